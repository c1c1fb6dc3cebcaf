import numpy as np
import pytest

import warpfuse


@pytest.fixture(autouse=True)
def settings():
    """Each test begins with the settings that a process begins with."""
    with warpfuse.config_context(device="cpu", fallback="error"):
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(20261123)
