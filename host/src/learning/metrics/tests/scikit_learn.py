"""Metrics as scikit-learn computes them: writes scikit_learn.json."""
import json, warnings
from pathlib import Path
import numpy as np, sklearn
from sklearn import metrics as M
warnings.filterwarnings("error", category=RuntimeWarning)
rng = np.random.default_rng(5)
L = lambda a: np.asarray(a).tolist()
out = {"source": f"scikit-learn {sklearn.__version__}"}
n = 60
w = rng.integers(0, 5, n) / 2.0
reg = []
for weights in (None, w):
    t = rng.normal(size=n) * 3 + 1; p = t + rng.normal(size=n)
    reg.append(dict(targets=L(t), predictions=L(p), weights=None if weights is None else L(weights),
        r2=M.r2_score(t, p, sample_weight=weights), mse=M.mean_squared_error(t, p, sample_weight=weights),
        mae=M.mean_absolute_error(t, p, sample_weight=weights)))
out["regression"] = reg
dev = []
for power in (-1.5, 0, 1, 1.5, 2, 2.5, 3):
    for weights in (None, w):
        t = rng.gamma(2.0, size=n); 
        if 1 <= power < 2: t[:20] = 0; 
        if power <= 0: t[:20] -= 2
        p = rng.gamma(2.0, size=n) + 0.1
        dev.append(dict(power=power, targets=L(t), predictions=L(p), weights=None if weights is None else L(weights),
            mean=M.mean_tweedie_deviance(t, p, sample_weight=weights, power=power),
            explained=M.d2_tweedie_score(t, p, sample_weight=weights, power=power) if power >= 0 else None))
out["deviance"] = dev
cls = []
for k in (2, 3, 6):
    for weights in (None, w):
        used = k if k < 6 else 5  # class 5 never occurs
        t = rng.integers(0, used, n); s = rng.normal(size=(n, k)); s[np.arange(n), t] += 1.0
        if k == 6: s[:, 5] = -50.0; t[t == 4] = 3; t[0] = 4; s[:, 4] = -40; 
        s = np.round(s, 1)  # ties
        e = np.exp(s); p = e / e.sum(axis=1, keepdims=True)
        p = np.floor(p * 4096) / 4096; p[:, 0] = 1 - p[:, 1:].sum(axis=1)  # exact in decimals, and ties
        if k == 2: p[0] = [1, 0]; t[0] = 1; p[1] = [0, 1]; t[1] = 1
        y = p.argmax(axis=1)
        kw = dict(sample_weight=weights)
        c = dict(classes=k, targets=L(t), predictions=L(y), probabilities=L(p), weights=None if weights is None else L(weights),
            accuracy=M.accuracy_score(t, y, **kw), confusion=L(M.confusion_matrix(t, y, labels=range(k), **kw)),
            log_loss=M.log_loss(t, p, labels=range(k), **kw))
        for avg in ("macro", "weighted", "micro") + (("binary",) if k == 2 else ()):
            q = M.precision_recall_fscore_support(t, y, average=avg, zero_division=0, **kw)
            c[avg] = L(q[:3])
        if k == 2: c["auc"] = M.roc_auc_score(t, p[:, 1], **kw); c["explained"] = M.d2_log_loss_score(t, p, **kw)
        if k == 3: c["auc"] = M.roc_auc_score(t, p, multi_class="ovr", average="macro", **kw)
        cls.append(c)
out["classification"] = cls
json.dump(out, open(Path(__file__).with_name("scikit_learn.json"), "w"))
