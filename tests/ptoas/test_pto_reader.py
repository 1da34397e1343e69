"""The `.pto` reader takes every text in use, and answers anything else with one error that says where."""

import time

import pytest

from insight_trace.errors import InputError
from insight_trace.ptoas.pto_parser import parse_pto, read_pto
from insight_trace.ptoas.pto_syntax import operations

PYPTO = """module attributes {pto.target_arch = "a2a3"} {
  func.func @k(%arg0: !pto.ptr<bf16>, %arg1: index, %__pypto_spmd_block_idx: i32) attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {
  %c16_index = arith.constant 16 : index
  %c1_index = arith.constant 1 : index
  %x__ssa_v0_view = pto.make_tensor_view %arg0, shape = [%c16_index, %arg1], strides = [%arg1, %c1_index] {layout = #pto.layout<nd>}: !pto.tensor_view<?x?xbf16> loc("m.py":3:1)
  %t = pto.alloc_tile addr = %c16_index valid_row = %arg1 : !pto.tile_buf<loc=vec, dtype=bf16, rows=16, cols=64, v_row=?, v_col=64>
  pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
  return
  }
}
"""  # noqa: E501


def test_a_module_says_its_target_and_a_function_its_kind_and_parameters():
    module = parse_pto(PYPTO)
    assert module.attributes == {"pto.target_arch": "a2a3"}
    function = module.functions["k"]
    assert function.kernel_kind == "vector"
    assert [(p.name, p.type) for p in function.parameters] == [
        ("arg0", "!pto.ptr<bf16>"),
        ("arg1", "index"),
        ("__pypto_spmd_block_idx", "i32"),
    ]
    assert [o.name for o in function.body][-2:] == ["pto.set_flag", "return"]


def test_an_operation_gives_its_lists_whether_or_not_a_comma_stands_before_strides():
    comma = parse_pto(PYPTO).functions["k"].body[2]
    january = parse_pto(PYPTO.replace("], strides =", "] strides =")).functions["k"].body[2]
    for operation in (comma, january):
        assert operation.list_after("shape") == ("%c16_index", "%arg1")
        assert operation.list_after("strides") == ("%arg1", "%c1_index")


def test_signatures_operations_and_attributes_may_span_lines():
    text = """
    // a comment with func.func @no(%x: index) {
    module {
      func.func @hand(
          %gm_a: !pto.ptr<f32>,
          %gm_b: !pto.ptr<f32>)
          attributes {pto.entry} {
        %i = pto.import_reserved_buffer {
          name = "fifo",
          peer_func = @other
        } -> i32
        pto.aic_initialize_pipe {dir_mask = 1, slot_size = 1024}
          (gm_slot_buffer = %gm_a : !pto.ptr<f32>,
           c2v_consumer_buf = %i : i32)
        func.call @other(%gm_b)
          : (!pto.ptr<f32>) -> ()
        return
      }
      func.func private @other(%p: !pto.ptr<f32>) { return }
    }
    """
    module = parse_pto(text)
    assert [o.name for o in module.functions["hand"].body] == [
        "pto.import_reserved_buffer",
        "pto.aic_initialize_pipe",
        "func.call",
        "return",
    ]
    assert module.functions["other"].private
    pipe = module.functions["hand"].body[1]
    size = pipe.after("slot_size")
    assert size is not None
    assert size.text == "1024"


def test_regions_nest_and_results_with_a_count_get_a_name_each():
    text = """func.func @w(%n: index) {
      %c0 = arith.constant 0 : index
      %r:2 = scf.while (%i = %c0, %j = %c0) : (index, index) -> (index, index) {
        scf.condition(%n) %i, %j : index, index
      } do {
      ^bb0(%a: index, %b: index):
        %y:2 = scf.if %n -> (index, index) {
          scf.yield %a, %b : index, index
        } else {
          scf.yield %b, %a : index, index
        }
        scf.yield %y#0, %y#1 : index, index
      }
      return
    }"""
    loop = parse_pto(text).functions["w"].body[1]
    assert loop.results == ("r#0", "r#1")
    assert len(loop.regions) == 2
    assert loop.block_arguments == ("a", "b")
    inner = loop.regions[1][0]
    assert inner.name == "scf.if"
    assert inner.results == ("y#0", "y#1")
    assert [o.name for o in operations(loop.regions[1])].count("scf.yield") == 3


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("func.func @k(%a: index", "signature does not end|':'"),
        ("func.func @k() {\n  %x = ", "operation was expected"),
        ("module {\n func.func @k() {\n", "never closed"),
        ("func.func (", "@name"),
        ("hello", "begins no module"),
        ("func.func @k() {\n ]\n}", "operation was expected|closes nothing"),
        ("module {} §", "not part of .pto text"),
        ("%a:99999 = pto.x\n", "number of results"),
    ],
)
def test_broken_text_is_one_error_that_names_the_line(text, what):
    with pytest.raises(InputError, match=what) as caught:
        parse_pto(text, "k.pto")
    assert caught.value.where.startswith("k.pto:")


def test_hostile_nesting_is_refused_at_once():
    begin = time.process_time()
    with pytest.raises(InputError, match="too deep"):
        parse_pto("func.func @k(%a: i1) {\n" + "scf.if %a {\n" * 5000)
    with pytest.raises(InputError):
        parse_pto("<" * 200_000)
    assert time.process_time() - begin < 20


def test_a_missing_file_says_where_the_pto_comes_from(tmp_path):
    with pytest.raises(InputError, match=r"PyPTO writes the \.pto beside"):
        read_pto(tmp_path / "gone.pto")


def test_a_file_that_is_not_text_is_refused(tmp_path):
    path = tmp_path / "k.pto"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="UTF-8"):
        read_pto(path)
