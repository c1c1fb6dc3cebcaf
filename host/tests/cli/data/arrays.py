"""Writes the arrays of `arrays.rs` with NumPy and SciPy: python3 arrays.py"""

import numpy as np
import scipy.sparse as sparse

x = np.array([[0, 1.5, 0, -2], [0, 0, 0, 0], [3, 0, 0, 4], [0, 0.25, 0, 0], [1, 1, 1, 1], [0, 0, 2, 0]])
for form in ["csr", "csc", "coo"]:
    sparse.save_npz(f"{form}.npz", sparse.csr_array(x).asformat(form), compressed=form != "csc")
np.save("half.npy", x.astype(np.float16))
labels = np.array(["Köln", "Ulm", "Köln", "Ulm", "Köln", "Ulm"])
np.save("labels.npy", labels)
np.save("bytes.npy", labels.astype("U1").astype("S1"))
np.savez("texts.npz", X=x, y=labels)
