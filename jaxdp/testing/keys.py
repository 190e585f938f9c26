"""Tests whether a traced function uses a random key twice, including uses in branches and loops.

`jax.debug_key_reuse` follows arrays. This module follows values: two arrays that are computed in the same way contain
the same keys. For example, two calls of `fold_in(key, 1)` give the same key. In JAX's default implementation,
`split(key)[1]` is this key, too. Reading the 32-bit words of a key by `key_data`, as `jaxdp.random` does, is a use. A
key that does not depend on a given key, such as `key(0)`, is the same in every run, and must not be used.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.testing.equations import content_of, indices_of, inner_of, is_integer, is_key, location_of, split_scan

# Operations that return the same keys.
SAME = {"reshape", "squeeze", "transpose", "expand_dims", "copy", "copy_p", "convert_element_type", "device_put", "rev"}
COPIES = {"broadcast_in_dim", "tile"}  # operations that repeat keys
PARTS = {"slice", "dynamic_slice", "gather", "unstack"}  # operations that take keys out of an array
SELECT = "select_n"
MAKES = {"random_seed", "random_wrap"}  # operations that make keys from numbers
# Operations that take keys without using them.
FREE = {"eq", "ne", SELECT, "random_fold_in", "random_clone", "optimization_barrier", "stop_gradient"}


def check_keys_of(closed: Any, *, num_carried: int = 0, free: Collection[int] = ()) -> None:
    """Checks that no key is used twice in a traced function, or in its repetitions.

    A key is used if bits are drawn from it, if it is split, or if its words are read. As in JAX, `fold_in` with
    different data derives different keys, which also differ from the original key. `fold_in(key, number)` equals
    `split(key, count)[number]`, so only one of the two may be used. If the number or the index is not a constant, the
    two keys count as equal. An entry of an array of indices counts as not constant. Two elements of one split count as
    different unless their indices are the same value or the same constant, so the check misses some keys that are
    equal.

    Args:
        closed: a closed jaxpr, from `jax.make_jaxpr`.
        num_carried: the last `num_carried` inputs are the first `num_carried` outputs of the previous repetition; 0 if
            the function is not repeated.
        free: indices of inputs that may be used freely, together with all keys derived from them.

    Raises:
        AssertionError: if a key is used twice, or if a used key is the same in every run. The message has the places of
            the uses.
    """
    walk = _Walk()
    jaxpr = closed.jaxpr
    consts = [walk.constant(const) for const in closed.consts]
    inputs = [walk.fresh() for _ in jaxpr.invars]
    fixed, carried = inputs[: len(inputs) - num_carried], inputs[len(inputs) - num_carried :]
    walk.free.update(inputs[index] for index in free)

    def body(loop: int, state: list[int]) -> list[int]:
        walk.free.update(state[index - len(fixed)] for index in free if index >= len(fixed))
        return walk.run(jaxpr, consts, [*fixed, *state])

    walk.loop(body, carried, is_repeated=num_carried > 0)


class _Walk:
    """A walk through a jaxpr; the walk gives each value a number, and records the uses of keys.

    Values have the same number if they are computed in the same way.
    """

    def __init__(self) -> None:
        # Keys and words are represented by their numbers, places by text.
        self.numbers: dict[Hashable, int] = {}
        self.loops: dict[int, frozenset[int]] = {}  # by number of a value: the loops in which it changes
        self.wholes: dict[int, set[int]] = {}  # by key: the arrays with this key, or the keys that it may be equal to
        self.used: dict[int, str] = {}  # by key, or words that were read: the place of the use
        self.used_parts: dict[int, str] = {}  # by array or key (see `wholes`): the place where a part was used
        self.free: set[int] = set()  # keys that may be used freely
        self.made: set[int] = set()  # keys that are the same in every run
        self.random: set[int] = set()  # drawn numbers, and numbers that are computed from them
        self.copies: dict[int, int | None] = {}  # by array of repeated keys: the key, if there is only one
        self.called = ""  # place of the call of a function that JAX traced earlier
        self.active: tuple[int, ...] = ()  # the loops around the current equation
        # By words of a key: the key, and the loops that were active when the words were taken.
        self.words: dict[int, tuple[int, tuple[int, ...]]] = {}
        self.once: dict[int, set[int]] = {}  # by key or words: the loops into which the words came from outside
        self.integers: dict[int, int] = {}  # constants that are one integer
        self.splits: dict[int, dict[int, int]] = {}  # by key: the arrays of keys into which it is split, with sizes
        self.parents: dict[int, int] = {}  # by array of keys: the key that is split into it
        # By array of keys: the keys that are taken out of it, with their possible indices.
        self.elements: dict[int, dict[int, np.ndarray]] = {}
        self.children: dict[int, dict[int, int | None]] = {}  # by key: keys by `fold_in`, with numbers if constant

    def fresh(self, loops: Iterable[int] = ()) -> int:
        """Returns the number of a new value that equals no other value, and that changes in the given loops."""
        return self.number(("fresh", len(self.numbers)), loops)

    def number(self, content: Hashable, loops: Iterable[int] = ()) -> int:
        """Returns the number of a value; values with equal `content` have the same number."""
        number = self.numbers.setdefault(content, len(self.numbers))
        self.loops.setdefault(number, frozenset(loops))
        return number

    def choice(self, numbers: Iterable[int], loops: Iterable[int] = ()) -> int:
        """Returns a new number for a value that equals one of the numbered values, for example after branches."""
        number = self.fresh(loops)
        self.wholes[number] = {*numbers}
        return number

    def constant(self, value: Any) -> int:
        """Returns the number of a constant; equal arrays have the same number."""
        if jnp.issubdtype(jnp.result_type(value), jax.dtypes.prng_key):
            number = self.number(("key", self.constant(jax.random.key_data(value))))
            self.made.add(number)
            return number
        array = np.asarray(value)
        number = self.number(("constant", str(array.dtype), array.shape, array.tobytes()))
        if array.ndim == 0 and np.issubdtype(array.dtype, np.integer):
            self.integers[number] = int(array)
        return number

    def use(self, number: int, where: str) -> None:
        """Records the use of a key; raises an AssertionError if it was used before, or is the same in every run."""
        if number in self.free:
            return
        if number in self.made:
            raise AssertionError(f"a key is the same in every run: it depends on no given key, and is used {where}")
        wholes = self._wholes_of(number)
        for other in (self.used.get(number), self.used_parts.get(number), *map(self.used.get, wholes)):
            if other is not None:
                raise AssertionError(f"a key is used twice: {other}, and {where}")
        if number in self.copies:
            raise AssertionError(f"a key is used twice: copies of it, {where}")
        self.used[number] = where
        for whole in wholes:
            self.used_parts.setdefault(whole, where)

    def _read(self, words: int, where: str) -> None:
        """Records one use of a key through its 32-bit words; later uses of the same words do not count."""
        if words not in self.used:
            key, loops = self.words[words]
            self.use(key, where)
            self.used[words] = where
            for number in (key, words):
                self.once.setdefault(number, set()).update(set(self.active) - set(loops))

    def _wholes_of(self, number: int) -> list[int]:
        """Returns the arrays that may contain a key and the keys that may equal it, directly or through others."""
        wholes = [*self.wholes.get(number, ())]
        for whole in wholes:  # grows during the loop
            wholes += [outer for outer in self.wholes.get(whole, ()) if outer not in wholes]
        return wholes

    def run(self, jaxpr: Any, consts: Sequence[int], inputs: Sequence[int]) -> list[int]:
        """Walks through a jaxpr, and returns the numbers of its outputs."""
        number_of = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *inputs], strict=True))

        def read(var: Any) -> int:
            return self.constant(var.val) if hasattr(var, "val") else number_of[var]

        for eqn in jaxpr.eqns:
            outputs = self._step(eqn, [read(var) for var in eqn.invars])
            number_of.update(zip(eqn.outvars, outputs, strict=True))
        return [read(var) for var in jaxpr.outvars]

    def _step(self, eqn: Any, inputs: list[int]) -> list[int]:
        name, params = eqn.primitive.name, eqn.params
        if name == "random_unwrap":  # not a use if the words only make the same key again, by `random_wrap`
            words = self.fresh(self.loops[inputs[0]])
            self.words[words] = inputs[0], self.active
            return [words]
        if name == "random_wrap" and inputs[0] in self.words:
            return [self.words[inputs[0]][0]]
        if name == "scan":
            return self._scan(eqn, inputs)
        if name == "while":
            return self._while(eqn, inputs)
        if name == "cond":
            return self._cond(params["branches"], inputs[1:])
        if name in SAME and inputs[0] in self.words:
            return inputs
        inner_jaxpr = inner_of(params, len(inputs))
        if inner_jaxpr is not None:
            outer, self.called = self.called, self.called or location_of(eqn)
            outputs = self.run(inner_jaxpr.jaxpr, [self.constant(const) for const in inner_jaxpr.consts], inputs)
            self.called = outer
            return outputs
        keys = [number for number, var in zip(inputs, eqn.invars, strict=True) if is_key(var)]
        if keys and name in SAME:
            return keys
        if keys and name in PARTS and keys[0] in self.copies:
            only = self.copies[keys[0]]
            if only is not None and eqn.outvars[0].aval.size == 1:
                return [only] * len(eqn.outvars)
        draws = keys and name not in PARTS | FREE | COPIES
        for number in keys if draws else ():
            self.use(number, f"by {name}{self.called or location_of(eqn)}")
        words = set(inputs) & self.words.keys()
        for word in words:
            self._read(word, f"by its words{self.called or location_of(eqn)}")
        loops = frozenset().union(*(self.loops[number] for number in inputs))
        if inputs and inputs[0] in self.integers and name == "convert_element_type" and is_integer(eqn.outvars[0]):
            return inputs
        content = content_of(name, params, inputs)
        outputs = []
        for index in range(len(eqn.outvars)):
            child = self._child(eqn, inputs, index)
            output_content = child or (None if content is None else (content, index))
            outputs.append(self.fresh(loops) if output_content is None else self.number(output_content, loops))
        if keys and all(number in self.free for number in keys):
            self.free.update(outputs)
        if draws or words or not self.random.isdisjoint(inputs):
            self.random.update(outputs)
        elif name in MAKES or (keys and {*keys} <= self.made):
            self.made.update(outputs)
        if keys and name in PARTS | {SELECT}:
            for output in outputs:
                self.wholes.setdefault(output, set()).update({*keys} - {output})
        for index, output in enumerate(outputs if keys else ()):
            self._relate(eqn, inputs, index, output)
        copied = self.copies.get(keys[0]) if keys else None
        if keys and name in COPIES:
            size = eqn.invars[0].aval.size
            if eqn.outvars[0].aval.size == size:
                return keys
            copied = keys[0] if size == 1 else copied
            self.copies[outputs[0]] = copied
        elif copied is not None and name in PARTS:
            self.copies.update(dict.fromkeys(outputs, copied))
        return outputs

    def _child(self, eqn: Any, inputs: list[int], index: int) -> Hashable | None:
        """Returns ("child", parent, number) if an output is `fold_in(parent, number)` of a constant; otherwise None."""
        name = eqn.primitive.name
        if name == "random_fold_in" and not eqn.invars[0].aval.shape and inputs[1] in self.integers:
            return "child", inputs[0], self.integers[inputs[1]]
        if name in ("slice", "unstack") and inputs[0] in self.parents and eqn.outvars[0].aval.size == 1:
            return "child", self.parents[inputs[0]], int(indices_of(eqn, index)[0])
        return None

    def _relate(self, eqn: Any, inputs: list[int], index: int, output: int) -> None:
        """Records that a key made by `fold_in` may equal an element of an array into which its parent is split."""
        name, key = eqn.primitive.name, inputs[0]
        if name in PARTS and key in self.parents:
            indices = self.elements[key][output] = indices_of(eqn, index)
            for child, number in self.children.get(self.parents[key], {}).items():
                if child != output and (number is None or number in indices):
                    self._add_whole(child, output)
        elif name == "random_split" and not eqn.invars[0].aval.shape:
            size = eqn.outvars[0].aval.size
            self.splits.setdefault(key, {})[output] = size
            self.parents[output] = key
            self.elements.setdefault(output, {})
            for child, number in self.children.get(key, {}).items():
                if number is None or number < size:
                    self._add_whole(child, output)
        elif name == "random_fold_in" and not eqn.invars[0].aval.shape:
            number = self.integers.get(inputs[1])
            self.children.setdefault(key, {})[output] = number
            for array, size in self.splits.get(key, {}).items():
                if number is None or number < size:
                    self._add_whole(output, array)
                for element, indices in self.elements[array].items():
                    if element != output and (number is None or number in indices):
                        self._add_whole(output, element)

    def _add_whole(self, number: int, array: int) -> None:
        """Records that an array may contain a key; if the key is used already, so is a part of the array."""
        self.wholes.setdefault(number, set()).add(array)
        if number in self.used:
            self.used_parts.setdefault(array, self.used[number])

    def _cond(self, branches: Sequence[Any], inputs: list[int]) -> list[int]:
        """Walks through branches. Only one branch runs, so all of them may use the same key."""
        before, all_used, all_parts, outputs = dict(self.used), {}, {}, []
        parts = dict(self.used_parts)
        for branch in branches:
            self.used, self.used_parts = dict(before), dict(parts)
            outputs.append(self.run(branch.jaxpr, [self.constant(const) for const in branch.consts], inputs))
            all_used |= self.used
            all_parts |= self.used_parts
        self.used, self.used_parts = all_used, all_parts
        return [
            numbers[0]
            if len(set(numbers)) == 1
            else self.choice(numbers, frozenset().union(*(self.loops[n] for n in (*numbers, *inputs))))
            for numbers in zip(*outputs, strict=True)
        ]

    def _scan(self, eqn: Any, inputs: list[int]) -> list[int]:
        params = eqn.params
        closed = params["jaxpr"]
        consts, carry, arrays = split_scan(params, inputs)
        is_repeated = params["length"] != 1

        def body(loop: int, state: list[int]) -> list[int]:
            elements[:] = [self._element(array, loop) for array in arrays]
            fixed = [self.constant(const) for const in closed.consts]
            return self.run(closed.jaxpr, fixed, [*consts, *state, *elements])

        elements: list[int] = []
        parts = dict(self.used_parts)
        state, outputs = self.loop(body, carry, is_repeated=is_repeated)
        for element, array in zip(elements, arrays, strict=True):
            if element in self.used:  # then all elements are used, one in each iteration
                if array in parts:
                    raise AssertionError(f"a key is used twice: {parts[array]}, and {self.used[element]}")
                self.used[array] = self.used[element]
        return [*state, *(self.fresh(self.loops[number]) for number in outputs[len(carry) :])]

    def _element(self, array: int, loop: int) -> int:
        """Returns the number of the array element that an iteration of a loop gets."""
        copied = self.copies.get(array)
        if copied is not None:
            return copied
        element = self.number(("element", array, loop), {loop} | self.loops[array])
        self.wholes[element] = {array}
        if array in self.made:
            self.made.add(element)
        return element

    def _while(self, eqn: Any, inputs: list[int]) -> list[int]:
        params = eqn.params
        num_cond, num_body = params["cond_nconsts"], params["body_nconsts"]
        cond_consts, consts = inputs[:num_cond], inputs[num_cond : num_cond + num_body]
        test, step = params["cond_jaxpr"], params["body_jaxpr"]

        def body(loop: int, state: list[int]) -> list[int]:
            self.run(test.jaxpr, [self.constant(const) for const in test.consts], [*cond_consts, *state])
            return self.run(step.jaxpr, [self.constant(const) for const in step.consts], [*consts, *state])

        return self.loop(body, inputs[num_cond + num_body :])[0]

    def loop(
        self, body: Callable[[int, list[int]], list[int]], carry: list[int], *, is_repeated: bool = True
    ) -> tuple[list[int], list[int]]:
        """Walks through the body of a loop, and returns the numbers of the last state and of the body's outputs."""
        loop = self.fresh()
        self.active += (loop,)
        used, parts = dict(self.used), dict(self.used_parts)
        constant = [False] * len(carry)  # which parts of the state an iteration returns unchanged
        while True:
            state = [
                number if same else self.choice([number], {loop} | self.loops[number])
                for number, same in zip(carry, constant, strict=True)
            ]
            outputs = body(loop, state)
            same = [before == after for before, after in zip(state, outputs, strict=False)]
            if same == constant:
                break
            constant, self.used, self.used_parts = same, dict(used), dict(parts)
        self.active = self.active[:-1]
        for number in self.used.keys() - used.keys():
            if is_repeated and loop not in self.loops[number] | self.once.get(number, set()):
                raise AssertionError(f"a key is used twice: in every iteration of a loop, {self.used[number]}")
        last = [
            number if same else self.fresh(self.loops[number]) for number, same in zip(carry, constant, strict=True)
        ]
        return last, outputs
