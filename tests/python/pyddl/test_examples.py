# SPDX-License-Identifier: Apache-2.0
"""Programs of the order of calls that IBM's pages teach: with memory of `malloc`, and with arrays alone."""

import pytest

WITH_MEMORY = """
import numpy as np
import pyddl
count = 100
pyddl.init()
data = np.arange(count, dtype=np.float32)
usable, device = pyddl.malloc(64, count * 4)
assert usable >= count * 4 and usable % 64 == 0
pyddl.memcpy_host_to_device(device, data)
pyddl.memsync()
pyddl.allreduce(device, count, pyddl.DDL_TYPE_FLOAT, pyddl.DDL_OP_SUM)
pyddl.memcpy_device_to_host(data, device)
pyddl.memsync()
pyddl.free(device)
if pyddl.rank() == 0:
    print(data.tolist())
pyddl.finalize()
"""
WITH_ARRAYS = """
import numpy as np
import pyddl
count = 100
pyddl.init()
data = np.arange(count, dtype=np.float32)
pyddl.allreduce(data, count, pyddl.DDL_TYPE_FLOAT, pyddl.DDL_OP_SUM)
if pyddl.rank() == 0:
    print(data.tolist())
pyddl.finalize()
"""


def expected(ranks):
    return str([float(ranks * i) for i in range(100)])


@pytest.mark.parametrize("text", [WITH_MEMORY, WITH_ARRAYS], ids=["memory", "arrays"])
class TestExamples:
    def test_alone(self, python, text):
        assert python(text, preamble="").strip() == expected(1)

    @pytest.mark.parametrize("count", [1, 2, 3, 5])
    def test_under_ddlrun(self, ranks, text, count):
        assert ranks(count, text, preamble="") == [expected(count)]

    def test_without_a_launcher_that_numbers_ranks(self, python, text):
        assert python(text, preamble="", variables={"DDL_OPTIONS": "-mode r:1"}).strip() == expected(1)


def test_with_the_usable_bytes(ranks):
    text = WITH_MEMORY.replace("pyddl.allreduce(device, count,", "pyddl.allreduce(device, usable // 4,")
    assert ranks(2, text, preamble="") == [expected(2)]
