# SPDX-License-Identifier: Apache-2.0
"""brighten.py LIBRARY: the op and the schedule of libpixels.so on an image of two pixels, from Python."""
import ctypes
import sys

pixels = ctypes.CDLL(sys.argv[1])
pixels.ddl_last_error.restype = ctypes.c_char_p
world, plan = ctypes.c_void_p(), ctypes.c_void_p()
image = (ctypes.c_uint8 * 6)(100, 1, 0, 20, 200, 255)
line = ctypes.create_string_buffer(1024)
if (pixels.ddl_open_environment(ctypes.byref(world)) or pixels.ddl_set_schedule(world, b"chain") or pixels.ddl_plan_allreduce(
        world, image, image, ctypes.c_size_t(2), pixels.ddl_find_element(b"pixel"), pixels.ddl_find_op(b"saturating_sum"),
        ctypes.byref(plan)) or pixels.ddl_run_plan(plan) or pixels.ddl_explain_plan(plan, line, ctypes.c_size_t(len(line)))):
    sys.exit(pixels.ddl_last_error().decode())
if pixels.ddl_get_rank(world) == 0:
    print(image[0], image[1], image[5])
    print(line.value.decode())
pixels.ddl_close(world)
