"""Rankings as networkx and numpy find them, and decompositions as scikit-learn does: writes spectral.json."""
import json
from pathlib import Path
import networkx as nx, numpy as np, sklearn
from sklearn.decomposition import PCA, TruncatedSVD
rng = np.random.default_rng(3)
L = lambda a: np.asarray(a).tolist()
out = {"source": f"networkx {nx.__version__}, numpy {np.__version__}, scikit-learn {sklearn.__version__}"}
n = 67
A = rng.integers(1, 9, (n, n)) / 4.0 * (rng.random((n, n)) < 0.08)
A[[3, 40, 66]] = 0  # dangling
A[:, [5, 41]] = 0  # nobody points there
A[7] = 0; A[:, 7] = 0  # alone
G = nx.from_numpy_array(A, create_using=nx.DiGraph)
U, s, Vt = np.linalg.svd(A)
unit = lambda v: L(np.abs(v) / np.abs(v).sum())
out["graph"] = dict(nodes=n, edges=[[int(i), int(j), A[i, j]] for i, j in zip(*A.nonzero())],
    hubs=unit(U[:, 0]), authorities=unit(Vt[0]), gap=s[1] / s[0])
z = rng.integers(0, 4, n).astype(float)
z_of = dict(enumerate(z)); uniform = {i: 1.0 for i in range(n)}
ranks = []
for d, personal, dangling in ((0.85, None, None), (0.5, None, None), (0.85, z_of, None), (0.95, z_of, uniform), (0.0, z_of, None)):
    r = nx.pagerank(G, alpha=d, personalization=personal, dangling=dangling, tol=1e-17, max_iter=2000)
    ranks.append(dict(damping=d, personalisation=None if personal is None else L(z), uniform=dangling is not None, scores=[r[i] for i in range(n)]))
out["ranks"] = ranks
X = rng.integers(-8, 9, (60, 33)) / 4.0 * (rng.random((60, 33)) < 0.4)
X[:, :5] *= 4; X[:, 2] += 3
svd = TruncatedSVD(4, algorithm="arpack", random_state=0).fit(X)
pca = PCA(4, svd_solver="full").fit(X)
all_s = np.linalg.svd(X, compute_uv=False); all_c = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
def flip(V): return V * np.sign(V[np.arange(len(V)), np.abs(V).argmax(axis=1)])[:, None]
out["svd"] = dict(x=L(X), cases=[
    dict(centred=False, singular_values=L(svd.singular_values_), components=L(flip(svd.components_)), spectrum=L(all_s[:5]),
         explained=L(svd.explained_variance_), ratio=L(svd.explained_variance_ratio_)),
    dict(centred=True, singular_values=L(pca.singular_values_), components=L(flip(pca.components_)), spectrum=L(all_c[:5]),
         explained=L(pca.explained_variance_ * 59 / 60), ratio=L(pca.explained_variance_ratio_))])
Path(__file__).with_name("spectral.json").write_text(json.dumps(out))
