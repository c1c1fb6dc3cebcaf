"""What the compiled module offers; see ``python/src``."""

from collections.abc import Callable, Sequence
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

__version__: str
has_kernels: bool

_Features = NDArray[Any] | tuple[NDArray[Any], NDArray[Any], NDArray[Any], tuple[int, int]]
_Start = tuple[NDArray[Any], NDArray[Any]]
_Watch = Callable[[int, float | None, float], object]

@final
class Device:
    name: str
    is_cuda: bool
    def __new__(cls, name: str) -> Self: ...
    def memory(self) -> dict[str, int]: ...

@final
class Group:
    rank: int
    size: int
    engine: str
    def __new__(cls) -> Self: ...
    def name(self, name: str) -> str: ...
    def device(self, name: str) -> Device: ...
    def rows(self, rows: int, device: Device) -> tuple[int, int]: ...
    def gather(self, own: bytes) -> list[bytes]: ...
    def barrier(self) -> None: ...
    def fail(self, why: str) -> None: ...

@final
class DeviceArray:
    shape: tuple[int, ...]
    dtype: str
    device: str
    __cuda_array_interface__: dict[str, Any]
    def __new__(cls, array: Any, device: Device) -> Self: ...
    def numpy(self) -> NDArray[Any]: ...

_Lent = DeviceArray | tuple[DeviceArray, DeviceArray, DeviceArray, tuple[int, int]]
_Vector = NDArray[Any] | DeviceArray

@final
class Solution:
    coef: NDArray[Any]
    intercept: NDArray[Any]
    n_iter: int
    converged: bool
    scale: float | None
    advice: str
    gradient_ratio: float
    objective: float
    gap: float | None
    solver: str
    seconds: float
    transfer_seconds: float
    peak_device_bytes: int

@final
class GroupedSolution:
    coef: NDArray[Any]
    intercept: NDArray[Any]
    n_iter: NDArray[np.int32]
    status: list[str]
    unconverged: tuple[int, str] | None
    failed: list[tuple[int, str]]

@final
class KernelSolution:
    dual_coef: NDArray[np.float64]
    n_iter: int
    converged: bool
    advice: str
    residual_ratio: float
    seconds: float

@final
class Count:
    value: int
    def __new__(cls) -> Self: ...
    def add(self, more: int) -> None: ...
    def clear(self) -> None: ...

@final
class Prepared:
    def __new__(
        cls,
        values: dict[str, Any],
        between: dict[str, tuple[float, float, bool]],
        largest: tuple[int, int, bool],
        estimator: str,
        params: dict[str, Any],
        served: Count,
    ) -> Self: ...
    def knows(self, attributes: dict[str, Any], is_sparse: bool) -> bool: ...
    def fit(
        self,
        attributes: dict[str, Any],
        x: Any,
        y: Any,
        device: Device,
        sample_weight: NDArray[np.float64] | None = None,
        classes: NDArray[Any] | None = None,
    ) -> tuple[Solution, NDArray[Any] | None] | None: ...

@final
class PreparedKernelRidge:
    def __new__(
        cls,
        values: dict[str, Any],
        between: dict[str, tuple[float, float, bool]],
        largest: tuple[int, int, bool],
        served: Count,
        *,
        kernel: str,
        gamma: float | None,
        alpha: float,
        tol: float,
        max_iter: int,
    ) -> Self: ...
    def knows(self, attributes: dict[str, Any], is_sparse: bool) -> bool: ...
    def fit(
        self, attributes: dict[str, Any], x: Any, y: Any, device: Device
    ) -> tuple[KernelSolution | None, None] | None: ...

@final
class Dataset:
    shape: tuple[int, int]
    dtype: str
    nnz: int
    device: str
    def __new__(cls, x: _Features | _Lent, device: Device, evaluations: int = 0) -> Self: ...
    def fit(
        self,
        estimator: str,
        params: dict[str, Any],
        y: NDArray[Any],
        sample_weight: NDArray[Any] | None = None,
        start: _Start | None = None,
        watch: _Watch | None = None,
        offset: NDArray[Any] | None = None,
    ) -> Solution: ...
    def cross_validate(
        self,
        estimator: str,
        path: Sequence[dict[str, Any]],
        y: NDArray[Any],
        fold_of: Sequence[int],
        folds: int,
        watch: _Watch | None = None,
    ) -> dict[str, Any]: ...
    def decision(self, coef: NDArray[Any], intercept: NDArray[Any]) -> NDArray[Any]: ...
    def transposed(self, p: NDArray[Any]) -> NDArray[Any]: ...

@final
class Matrix:
    shape: tuple[int, int]
    dtype: str
    device: str
    def __new__(cls, x: _Features | _Lent, device: Device, evaluations: int = 0) -> Self: ...
    def plan(self, product: str) -> str | None: ...
    def product(
        self,
        product: str,
        input: _Vector,
        v: _Vector | None,
        z: _Vector | None,
        alpha: float,
        beta: float,
    ) -> Any: ...
    def decision(self, coef: NDArray[Any], intercept: NDArray[Any]) -> NDArray[Any]: ...
    def decision_there(self, sides: DeviceArray, shift: DeviceArray) -> DeviceArray: ...
    def objective(
        self, loss: str, y: _Vector, target: _Vector, v: _Vector | None, epsilon: float
    ) -> tuple[float, Any]: ...

def fit(
    x: _Features,
    device: Device,
    estimator: str,
    params: dict[str, Any],
    y: NDArray[Any],
    sample_weight: NDArray[Any] | None = None,
    start: _Start | None = None,
    watch: _Watch | None = None,
    offset: NDArray[Any] | None = None,
) -> Solution: ...
def fit_groups(
    x: _Features,
    device: Device,
    estimator: str,
    params: dict[str, Any],
    y: NDArray[Any],
    groups: NDArray[Any],
    sample_weight: NDArray[Any] | None = None,
) -> GroupedSolution: ...
def group_predictors(
    x: _Features, coef: NDArray[np.float64], intercept: NDArray[np.float64], groups: NDArray[np.uint32]
) -> NDArray[np.float64]: ...
def plan(x: Any, product: str, gpu: str) -> dict[str, Any]: ...
def plan_of_shape(
    rows: int, cols: int, nnz: int | None, dtype: str, product: str, gpu: str
) -> dict[str, Any]: ...
def read_file(
    path: str,
    device: Device,
    *,
    dtype: str,
    cache: bool,
    columns: int | None,
    target: str | None,
    evaluations: int,
) -> tuple[Dataset, NDArray[Any] | None]: ...
def kernel_ridge(
    x: NDArray[Any],
    y: NDArray[Any],
    device: Device,
    *,
    kernel: str,
    gamma: float | None,
    alpha: float,
    tol: float,
    max_iter: int,
    watch: _Watch | None = None,
) -> KernelSolution: ...
def call_seconds() -> float: ...
def length_scale(kernel: str, gamma: float | None, columns: int) -> float: ...
def kernel_sum(
    targets: NDArray[Any],
    sources: NDArray[Any],
    weights: NDArray[Any],
    device: Device,
    *,
    kernel: str,
    length_scale: float,
) -> NDArray[Any]: ...
def truncated_svd(
    x: _Features,
    device: Device,
    components: int,
    *,
    centred: bool,
    tol: float,
    max_iter: int,
    seed: int,
    watch: _Watch | None = None,
) -> dict[str, Any]: ...
def are_plain(x: Any, y: Any, many: int) -> bool: ...
def is_finite(array: Any) -> bool | None: ...
def is_canonical(offsets: NDArray[Any], indices: NDArray[Any]) -> bool | None: ...
def encode(labels: Any) -> tuple[NDArray[Any], NDArray[Any]] | None: ...
def encode_text(labels: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[Any]] | None: ...
def sigmoids(scores: Any) -> NDArray[Any] | None: ...
def reduce(values: NDArray[Any], operation: str, device: Device) -> float | int | None: ...
def hits(
    x: _Features, device: Device, *, tol: float, max_iter: int, watch: _Watch | None = None
) -> dict[str, Any]: ...
def page_rank(
    x: _Features,
    device: Device,
    *,
    damping: float,
    personalization: Sequence[float] | None,
    tol: float,
    max_iter: int,
    watch: _Watch | None = None,
) -> dict[str, Any]: ...
def begin_checkpoint(path: str, every: float) -> None: ...
def end_checkpoint(remove: bool) -> None: ...
def run_command_line(arguments: Sequence[str]) -> int: ...
