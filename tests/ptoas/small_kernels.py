"""Small kernels that tests write to disk."""

from pathlib import Path

PTO = """module attributes {pto.target_arch = "a2a3"} {
  func.func @%NAME%(%arg0: !pto.ptr<f32>, %arg1: !pto.ptr<f32>%MORE%) attributes {pto.kernel_kind = #pto.kernel_kind<%KIND%>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %x_view = pto.make_tensor_view %arg0, shape = [%c16, %c16], strides = [%c16, %c1] : !pto.tensor_view<?x?xf32>
    %y_view = pto.make_tensor_view %arg1, shape = [%c16, %c16], strides = [%c16, %c1] : !pto.tensor_view<?x?xf32>
    %p = pto.partition_view %x_view, offsets = [%c0, %c0], sizes = [%c16, %c16] : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<16x16xf32>
    %q = pto.partition_view %y_view, offsets = [%c0, %c0], sizes = [%c16, %c16] : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<16x16xf32>
    %t = pto.alloc_tile : !pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=16, v_row=16, v_col=16>
    pto.tload ins(%p : !pto.partition_tensor_view<16x16xf32>) outs(%t : !pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=16>)
    pto.texp ins(%t : !pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=16>) outs(%t : !pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=16>)
    pto.tstore ins(%t : !pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=16>) outs(%q : !pto.partition_tensor_view<16x16xf32>)
    return
  }
}
"""  # noqa: E501
VECTOR_PTO = PTO.replace("%MORE%", "").replace("%KIND%", "vector")


def write_kernel(directory: Path, stem: str, function: str = "", entry: str = "AICORE void") -> Path:
    """A small vector kernel; returns its .cpp."""
    directory.mkdir(parents=True, exist_ok=True)
    function = function or stem
    (directory / f"{stem}.pto").write_text(VECTOR_PTO.replace("%NAME%", function))
    cpp = directory / f"{stem}.cpp"
    cpp.write_text(f"{entry} {function}(__gm__ float* v1, __gm__ float* v2) {{ TEXP(v1, v2); }}\n")
    return cpp
