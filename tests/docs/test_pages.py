"""Reading a page: blocks as they stand, the answers that belong to them, and what an answer may lack."""

import pytest

from tests.docs.pages import Block, blocks, differences, steps

PAGE = """
Some words, and `code` in them.

```sh
echo '{"a": 1}'
```
```json
{"a": 2}
```

> Set apart:
>
> ```sh
> if true; then
>   echo "  two spaces"
>
> fi
> ```

```python
print()
```
"""


def test_blocks_are_taken_as_they_stand_without_the_mark_of_a_quotation() -> None:
    assert blocks(PAGE) == [
        Block("sh", "echo '{\"a\": 1}'\n", 4),
        Block("json", '{"a": 2}\n', 7),
        Block("sh", 'if true; then\n  echo "  two spaces"\n\nfi\n', 13),
        Block("python", "print()\n", 20),
    ]


def test_a_step_has_the_answer_that_follows_it_at_once() -> None:
    assert [(step.typed.line, step.answer) for step in steps(blocks(PAGE))] == [(4, {"a": 2}), (13, None)]


def test_an_answer_that_is_an_error_is_known_as_one() -> None:
    shown = blocks('```sh\nfalse\n```\n```json\n{"error": "…"}\n```\n')
    assert [step.is_refused for step in steps(shown)] == [True]


@pytest.mark.parametrize(
    ("shown", "got", "said"),
    [
        ({"a": 1, "b": None}, {"a": 7, "b": "x", "more": 1}, []),
        ({"a": 1, "b": 2}, {"a": 1}, ["answer has no b"]),
        ({"a": "1"}, {"a": 1}, ["answer.a is 1, not something like '1'"]),
        ({"ok": True}, {"ok": False}, ["answer.ok is False, not True"]),
        ([{"a": 1}], [{"a": 1}, {"b": 1}], ["answer[1] has no a"]),
        ([1], [], ["answer is empty"]),
        ([], [1], []),
    ],
)
def test_what_an_answer_lacks_is_named(shown: object, got: object, said: list[str]) -> None:
    assert differences(shown, got) == said


def test_a_block_without_an_end_is_noticed() -> None:
    with pytest.raises(AssertionError, match="begins on line 2 does not end"):
        blocks("\n```sh\necho\n")
