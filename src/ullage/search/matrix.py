"""How near are very many vectors to a few?

A vector is kept as bytes and what one step of them is worth: a quarter of the memory, which moves a nearness by less
than three thousandths. Compared with several, a hundred thousand take half the time, too, because what takes time is
memory: some at a time are made wide where they stay in the cache. Knows rows by place, not what they are of.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["Matrix", "Vector"]

Places = NDArray[np.intp] | NDArray[np.int32]
Vector = NDArray[np.float32]

_STEPS = 127
_MOST = 9
"""Vectors that are compared with at a time."""
_SMALL = 1 << 18
"""Multiplications up to which OpenBLAS does a product in one thread: threads that wait for each other and for the same
memory burn two to three times the CPU."""
_WIDE = 4
"""Blocks that are made wide at a time: half a megabyte."""


class Matrix:
    """Rows of zeros, until they are put."""

    def __init__(self, number: int, size: int) -> None:
        height = max(1, _SMALL // (size * _MOST))
        self._number = number
        self._blocks = np.zeros((-(-number // height), height, size), dtype=np.int8)
        """The last may end in rows that are nobody's."""
        self.steps = np.zeros(number, dtype=np.float32)

    @property
    def size(self) -> int:
        return self._blocks.shape[2]

    def put(self, places: Places, vectors: Vector) -> None:
        steps = np.abs(vectors).max(axis=1, initial=0) / np.float32(_STEPS)
        self.steps[places] = steps
        self.rows[places] = np.round(vectors / np.where(steps, steps, 1)[:, None])

    def take(self, places: Places, other: "Matrix", theirs: Places) -> None:
        """Puts rows of another matrix, whose vectors have the same size."""
        self.steps[places] = other.steps[theirs]
        self.rows[places] = other.rows[theirs]

    def nearness(self, vectors: Vector) -> Vector:
        """How near each row is to each of these vectors: a row a vector."""
        near = self._products(vectors).transpose(1, 0, 2).reshape(len(vectors), -1)
        return near[:, : self._number] * self.steps

    def nearness_together(self, vectors: Vector, of_others: float) -> Vector:
        """How near each row is to the first of these vectors and, where there are others, to the nearest of them, which
        counts so much of the whole. Cheaper than one by one where rows are very many."""
        near = self._products(vectors)
        nearest = near[:, 0]
        if len(vectors) > 1:
            nearest = (1 - of_others) * nearest + of_others * near[:, 1:].max(axis=1)
        return nearest.ravel()[: self._number] * self.steps

    def _products(self, vectors: Vector) -> Vector:
        """By block, by vector, by row of the block, in steps."""
        blocks, height, size = self._blocks.shape
        found = np.empty((blocks, len(vectors), height), dtype=np.float32)
        room = np.empty((_WIDE, height, size), dtype=np.float32)
        for start in range(0, blocks, _WIDE):
            some = slice(start, start + _WIDE)
            wide = room[: len(self._blocks[some])]
            wide[...] = self._blocks[some]
            np.matmul(vectors, wide.transpose(0, 2, 1), out=found[some])
        return found

    @property
    def rows(self) -> NDArray[np.int8]:
        """In steps."""
        return self._blocks.reshape(-1, self.size)
