"""The program that this build was made from. It needs pypto to run; here its lines are what traces point to."""

import pypto.language as pl

ROWS, COLS, BLOCK = 128, 64, 16


@pl.program
class ScaleBlocks:
    @pl.function(type=pl.FunctionType.InCore)
    def scale_blocks(self, x, y, scale, n_blocks):
        for block in pl.range(ROWS // BLOCK):
            if block < n_blocks:
                rows = pl.load(x, [block * BLOCK, 0], [BLOCK, COLS])
                scaled = pl.mul(rows, scale)
                shifted = pl.add(scaled, 1.0)
                pl.store(shifted, [block * BLOCK, 0], y)
        return y

    @pl.function(type=pl.FunctionType.InCore)
    def square_rows(self, y, z):
        rows = pl.load(y, [0, 0], [BLOCK, COLS])
        squared = pl.mul(rows, rows)
        total = pl.add(squared, rows)
        pl.store(total, [0, 0], z)
        return z

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x, config, z):
        y = pl.create_tensor([ROWS, COLS], dtype=pl.FP32)
        y = self.scale_blocks(x, y, 0.5, config[0])
        for block in pl.range(ROWS // BLOCK):
            z[block] = self.square_rows(y[block], z[block])
        return z
