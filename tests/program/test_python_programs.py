"""Python programs on the simulated device: what torch's `npu` device has of its own, and the vendor's `acl`."""

import os
import sys
from pathlib import Path

import pytest

from tests.program.test_own_programs import EXAMPLE, _torch_device_is_built, run_exec


def run_torch(folder: Path, text: str) -> None:
    """A torch program whose own asserts decide."""
    pytest.importorskip("torch", reason="torch is not installed")
    if not os.environ.get("INSIGHT_TRACE_LONG_TESTS") and not _torch_device_is_built():
        pytest.skip("compiling torch's npu device takes a minute: INSIGHT_TRACE_LONG_TESTS=1")
    (folder / "run.py").write_text(text)
    ran = run_exec(folder, sys.executable, "run.py")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_layers_train_on_the_device_as_on_the_cpu(tmp_path: Path) -> None:
    """Recurrent layers and convolutions: their fused cells and their backward have no kernel of the CPU."""
    run_torch(
        tmp_path,
        """
import torch, torch_npu
from torch import nn

def trained(layer, x):
    made = layer(x)
    made = made[0] if isinstance(made, tuple) else made
    made.pow(2).sum().backward()
    return [made.detach().cpu(), *(one.grad.cpu() for one in layer.parameters())]

torch.manual_seed(0)
for layer, x in (
    (nn.LSTM(4, 8, 2, batch_first=True, bidirectional=True), torch.randn(2, 5, 4)),
    (nn.GRU(4, 8), torch.randn(2, 5, 4)),
    (nn.RNN(4, 8), torch.randn(2, 5, 4)),
    (nn.LSTMCell(4, 8), torch.randn(3, 4)),
    (nn.GRUCell(4, 8), torch.randn(3, 4)),
    (nn.Conv2d(3, 4, 3, padding=1), torch.randn(2, 3, 8, 8)),
    (nn.ConvTranspose1d(4, 6, 3, bias=False), torch.randn(2, 4, 8)),
):
    on_cpu = trained(layer, x)
    layer.zero_grad()
    for mine, theirs in zip(trained(layer.npu(), x.npu()), on_cpu):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)
""",
    )


def test_views_of_complex_numbers_share_memory_and_conjugates_are_copied(tmp_path: Path) -> None:
    run_torch(
        tmp_path,
        """
import torch, torch_npu
x = torch.zeros(4, 2).npu()
torch.view_as_complex(x).add_(1 + 2j)
assert x.tolist() == [[1, 2]] * 4
torch.view_as_real(torch.view_as_complex(x))[0] = 7
assert x[0].tolist() == [7, 7]
made = torch.fft.ifft(torch.arange(8.0).npu())  # conjugated, and resolved when it is read
torch.testing.assert_close(made.cpu(), torch.fft.ifft(torch.arange(8.0)))
torch.testing.assert_close(made.conj().cpu(), torch.fft.ifft(torch.arange(8.0)).conj().resolve_conj())
""",
    )


def test_names_that_scripts_import_from(tmp_path: Path) -> None:
    run_torch(
        tmp_path,
        """
import torch, torch_npu
from torch.npu.amp import GradScaler, autocast
from torch_npu.npu.memory import empty_cache
x = torch.randn(4, 8).npu()
layer = torch.nn.Linear(8, 4).npu()
with autocast():
    assert layer(x).dtype is torch.float16
step, scaler = torch.optim.SGD(layer.parameters(), lr=0.1), GradScaler()
scaler.scale(layer(x).sum()).backward()
scaler.step(step)
scaler.update()
torch.npu.conv.allow_hf32 = torch.npu.matmul.allow_hf32 = False
drawn = []
for seed in (torch.manual_seed, torch.npu.manual_seed, torch.npu.manual_seed_all):
    seed(3)
    drawn.append(torch.rand(5, device="npu"))
assert torch.equal(drawn[0], drawn[1]) and torch.equal(drawn[0], drawn[2])
assert torch.equal(torch.ops.npu.npu_swiglu(x), torch_npu.npu_swiglu(x))
bytes_, scale = torch_npu.npu_dynamic_quant(x)
assert (bytes_.abs().amax(-1) == 127).all() and torch.allclose(bytes_ * scale[:, None], x, atol=0.02)
from torch_npu.contrib import transfer_to_npu
from torch.cuda.amp import autocast as of_cuda
with of_cuda():
    assert (x @ x.T).dtype is torch.float16
""",
    )


PYACL = """
import ctypes, subprocess
import acl
import numpy as np

def done(code):
    assert code == 0, (code, acl.get_recent_err_msg())

done(acl.init())
done(acl.rt.set_device(0))
context, code = acl.rt.create_context(0)
stream, code = acl.rt.create_stream()
x = np.arange(4096, dtype=np.float32).reshape(4, 1024)
buffers = [acl.rt.malloc(x.nbytes, 0)[0] for _ in range(3)]
host, code = acl.rt.malloc_host(x.nbytes)
done(acl.rt.memcpy(buffers[0], x.nbytes, acl.util.numpy_to_ptr(x), x.nbytes, 1))
data = x.tobytes()
done(acl.rt.memcpy(buffers[1], x.nbytes, acl.util.bytes_to_ptr(data), x.nbytes, 1))
subprocess.run(["bisheng", "-xcce", "-fPIC", "-shared", "--npu-arch=dav-2201", "add.cpp", "-o", "add.so"], check=True)
begin, end = acl.rt.create_event()[0], acl.rt.create_event()[0]
done(acl.rt.record_event(begin, stream))
ctypes.CDLL("./add.so").call(ctypes.c_void_p(stream), *map(ctypes.c_void_p, buffers), 4)
done(acl.rt.record_event(end, stream))
done(acl.rt.synchronize_stream(stream))
ms, code = acl.rt.event_elapsed_time(begin, end)
assert code == 0 and 0 < ms < 1
done(acl.rt.memcpy(host, x.nbytes, buffers[2], x.nbytes, 2))
assert (acl.util.ptr_to_numpy(host, (4, 1024), 11) == 2 * x).all()
assert acl.rt.memcpy(buffers[2], x.nbytes, host, x.nbytes, 2) == 107012  # the wrong direction
for one in buffers:
    done(acl.rt.free(one))
done(acl.rt.free_host(host))
try:
    acl.mdl.load_from_file("model.om")
except AttributeError as error:
    print(error)
"""


def test_the_vendors_python_functions_of_the_runtime_are_there(tmp_path: Path) -> None:
    kernel = EXAMPLE.read_text().split("int main()")[0]
    call = "{\n    add<<<4, nullptr, stream>>>(x, y, z, rows);\n}\n"
    (tmp_path / "add.cpp").write_text(
        f'{kernel}extern "C" void call(void *stream, float *x, float *y, float *z, int rows) {call}'
    )
    (tmp_path / "run.py").write_text(PYACL)
    ran = run_exec(tmp_path, sys.executable, "run.py")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "insight-trace's acl has no 'mdl'" in ran.stdout
