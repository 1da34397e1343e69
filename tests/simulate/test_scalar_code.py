"""What counts as scalar code of a kernel, in the assembly of both kinds of machines."""

import re

import pytest

from insight_trace.simulate.embedded.engine_objects import INCLUDE
from insight_trace.simulate.embedded.scalar_code import count_blocks

HEADER = INCLUDE / "pto" / "pto-inst.hpp"
X86 = f"""\
kernel_entry:
\t.file 1 "/home/me/kernel.cpp"
\t.file 2 "{HEADER}"
\t.loc 1 7 3
\tpushq\t%rbx
\tcall\t__sanitizer_cov_trace_pc@PLT
\tmovl\t$0, %eax
\tmovq\t8(%rsp), %rdx
.L3:
\tcall\t__sanitizer_cov_trace_pc@PLT
\txorl\t%ebx, %ecx
\timull\t%edx, %ecx
\tidivl\t%esi
\taddl\t(%rdi), %ecx
\tmulss\t%xmm1, %xmm0
\tdivss\t%xmm1, %xmm0
\t.loc 2 90 1
\taddl\t$1, %eax
\t.loc 1 9 3
\txorl\t%eax, %eax
\tcmpl\t%ebx, %eax
\tjne\t.L3
\tret
"""
ARM = f"""\
kernel_entry:
\t.file 1 "/home/me/kernel.cpp"
\t.file 2 "{HEADER}"
\t.loc 1 7 3
\tstp\tx29, x30, [sp, -16]!
\tbl\t__sanitizer_cov_trace_pc
\tmov\tw0, 0
.L3:
\tbl\t__sanitizer_cov_trace_pc
\teor\tw1, w1, w2
\tmul\tw1, w1, w3
\tsdiv\tw1, w1, w4
\tldr\tw5, [x6]
\tadd\tw1, w1, w5
\tfmul\ts0, s0, s1
\tfdiv\ts0, s0, s1
\t.loc 2 90 1
\tadd\tw0, w0, 1
\t.loc 1 9 3
\tcmp\tw0, w2
\tbne\t.L3
\tret
"""


def counted(text: str) -> list[dict[int, int]]:
    """Of each block, what it adds to which counter."""
    blocks = re.split(r".*insight_trace_code@?.*\n", text)[1:]
    on_x86 = re.compile(r"addq\t\$(\d+), %fs:(\d+)\(%rax\)")
    on_arm = re.compile(r"ldr\tx11, \[x9, #(\d+)\]\n\tadd\tx11, x11, #(\d+)")
    found = []
    for block in blocks:
        x86 = {int(at) // 8: int(n) for n, at in on_x86.findall(block)}
        found.append(x86 or {int(at) // 8: int(n) for at, n in on_arm.findall(block)})
    return found


@pytest.mark.parametrize("text", [X86, ARM], ids=["x86-64", "aarch64"])
def test_arithmetic_branches_and_memory_of_the_kernel_count_and_nothing_of_our_headers(text):
    made = count_blocks(text)
    assert "__sanitizer_cov_trace_pc" not in made
    # the first block has moves and a spill only; in the loop: an exclusive or, a load, an addition, a comparison and a
    # branch, and one each of the classes that are priced apart
    blocks = [block for block in counted(made) if block]
    assert blocks == [{0: 5, 1: 1, 2: 1, 3: 1, 4: 1}]
    # the rest of the program is as it was
    assert [line for line in text.split("\n") if "trace_pc" not in line] == [
        line for line in made.split("\n") if line in text.split("\n")
    ]


@pytest.mark.parametrize("text", [X86, ARM], ids=["x86-64", "aarch64"])
def test_a_block_that_a_loop_begins_with_says_where_the_loop_is(text):
    made = count_blocks(text)
    assert len(re.findall(r"%fs:48\(%rax\)|\[x9, #48\]", made)) == 1
    assert len(re.findall(r"%fs:40\(%rax\)|\[x9, #40\]", made)) == 2


def test_assembly_without_blocks_stays_as_it_is():
    assert count_blocks("\t.text\nmain:\n\tret\n") == "\t.text\nmain:\n\tret\n"


@pytest.mark.parametrize(("call", "add"), [("call\t{}@PLT", "addl\t$1, %eax"), ("bl\t{}", "add\tw0, w0, 1")])
def test_a_block_says_in_which_piece_of_the_code_it_lies(call, add):
    hook = "\t" + call.format("__sanitizer_cov_trace_pc")
    # 511 instructions of 4 bytes leave the second block in the first 2 KB; 512 more and it is in the second
    for between, byte, bit in ((511, 56, 1), (512, 56, 2), (512 * 9, 57, 2)):
        made = count_blocks("\n".join(["kernel:", hook, *[f"\t{add}"] * between, hook, "\tret", ""]))
        (last,) = re.findall(
            r"orb\t\$(\d+), %fs:(\d+)|orr\tw12, w12, #(\d+)\n\tstrb\tw12, \[x9, #(\d+)", made
        )[1:]
        assert [int(number) for number in last if number] == [bit, byte]
