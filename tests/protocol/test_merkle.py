"""Merkle trees, held against RFC 6962 and an independent library."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymerkle import InmemoryTree, InvalidProof
from pymerkle import verify_inclusion as their_verify

from protocol.errors import Invalid
from protocol.merkle import (
    CHUNK,
    EMPTY_ROOT,
    Tree,
    ancestors,
    chunked_inclusion_proof,
    leaf_hash,
    node_hash,
    read_path,
    root,
    verify_inclusion,
    write_path,
)

SIZES = [*range(1, 34), 63, 64, 65, 100, 127, 128, 129]


def _entries(size: int) -> list[bytes]:
    return [b"entry %d" % position for position in range(size)]


def _theirs(size: int) -> InmemoryTree:
    tree = InmemoryTree()
    tree.append_entries(_entries(size))
    return tree


def test_the_tree_without_leaves_is_the_hash_of_nothing() -> None:
    assert sha256(b"").digest() == EMPTY_ROOT == root([]) == Tree([]).root


def test_leaves_and_nodes_are_told_apart_by_their_prefix() -> None:
    assert leaf_hash(b"x") == sha256(b"\x00x").digest()
    assert node_hash(b"l" * 32, b"r" * 32) == sha256(b"\x01" + b"l" * 32 + b"r" * 32).digest()


def test_the_roots_of_the_certificate_transparency_test_tree() -> None:
    """The known roots over the first n of these eight inputs, from RFC 6962's reference implementation."""
    inputs = [
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    ]
    leaves = [leaf_hash(bytes.fromhex(item)) for item in inputs]
    assert [root(leaves[:size]).hex() for size in (1, 2, 3, 8)] == [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ]


@pytest.mark.parametrize("size", SIZES)
def test_roots_and_proofs_are_those_of_an_independent_library(size: int) -> None:
    theirs = _theirs(size)
    leaves = [leaf_hash(entry) for entry in _entries(size)]
    tree = Tree(leaves)
    assert root(iter(leaves)) == tree.root == theirs.get_root()
    for index, leaf in enumerate(leaves):
        their_proof = theirs.prove_inclusion(index + 1)
        ours = tree.inclusion_proof(index)
        assert [leaf, *ours] == their_proof.path
        assert verify_inclusion(leaf, index, size, their_proof.path[1:], theirs.get_root())
        their_verify(leaf, tree.root, their_proof, index=index + 1, size=size)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 21])
def test_a_proof_shows_nothing_about_another_leaf_place_size_or_root(size: int) -> None:
    theirs = _theirs(size)
    leaves = [leaf_hash(entry) for entry in _entries(size)]
    tree = Tree(leaves)
    for index, leaf in enumerate(leaves):
        proof = tree.inclusion_proof(index)
        wrong = leaf_hash(b"forged")
        assert not verify_inclusion(wrong, index, size, proof, tree.root)
        assert not verify_inclusion(leaf, index, size, proof, wrong)
        assert not verify_inclusion(leaf, index, size, [*proof, wrong], tree.root)
        assert not verify_inclusion(leaf, size, size, proof, tree.root)
        assert not verify_inclusion(leaf, -1, size, proof, tree.root)
        for position in range(len(proof)):
            assert not verify_inclusion(leaf, index, size, proof[:position] + proof[position + 1 :], tree.root)
            changed = [*proof[:position], wrong, *proof[position + 1 :]]
            assert not verify_inclusion(leaf, index, size, changed, tree.root)
        for other in range(size):
            if other != index:
                assert not verify_inclusion(leaf, other, size, proof, tree.root)
        with pytest.raises(InvalidProof):
            their_verify(wrong, tree.root, theirs.prove_inclusion(index + 1))


def test_an_inner_node_cannot_pass_for_a_leaf() -> None:
    leaves = [leaf_hash(entry) for entry in _entries(4)]
    left, right = node_hash(*leaves[:2]), node_hash(*leaves[2:])
    assert root([leaf_hash(left + right)]) != root(leaves)
    assert root([leaf_hash(leaves[0] + leaves[1]), leaf_hash(leaves[2] + leaves[3])]) != root(leaves)


@pytest.mark.parametrize("size", [4095, 4096, 4097, 8192, 8193, 12288, 20_000])
def test_the_streaming_root_of_many_leaves_is_that_of_the_whole_tree(size: int) -> None:
    leaves = [sha256(b"%d" % position).digest() for position in range(size)]
    assert root(iter(leaves)) == Tree(leaves).root


@given(st.lists(st.binary(max_size=8), min_size=1, max_size=40), st.data())
def test_every_leaf_of_any_tree_is_provable(entries: list[bytes], data: st.DataObject) -> None:
    leaves = [leaf_hash(entry) for entry in entries]
    tree = Tree(leaves)
    index = data.draw(st.integers(0, len(leaves) - 1))
    assert verify_inclusion(leaves[index], index, len(tree), tree.inclusion_proof(index), tree.root)


def test_a_leaf_that_is_not_there_has_no_proof() -> None:
    for index in (-1, 3):
        with pytest.raises(IndexError):
            Tree([leaf_hash(entry) for entry in _entries(3)]).inclusion_proof(index)


@pytest.mark.parametrize("size", [1, 5, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK + 77, 5 * CHUNK])
def test_a_chunk_and_the_roots_of_all_give_the_same_proof_as_the_whole_tree(size: int) -> None:
    leaves = [leaf_hash(entry) for entry in _entries(size)]
    whole = Tree(leaves)
    chunks = [leaves[start : start + CHUNK] for start in range(0, size, CHUNK)]
    roots = [root(chunk) for chunk in chunks]
    assert root(leaves) == root(roots) == whole.root
    for index in {0, size // 2, size - 1, size // CHUNK * CHUNK - 1, CHUNK} & set(range(size)):
        proof = chunked_inclusion_proof(chunks[index // CHUNK], index, roots)
        assert proof == whole.inclusion_proof(index)
        assert verify_inclusion(leaves[index], index, size, proof, whole.root)


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 63, 64, 65])
def test_ancestors_are_the_roots_over_the_leaves_below_them(size: int) -> None:
    leaves = [leaf_hash(entry) for entry in _entries(size)]
    for height in range(8):
        nodes = ancestors(leaves, height)
        assert nodes == [root(leaves[start : start + 2**height]) for start in range(0, size, 2**height)]
        assert root(nodes) == root(leaves)


@given(st.lists(st.binary(min_size=32, max_size=32), max_size=64))
def test_a_path_is_read_as_it_was_written(siblings: list[bytes]) -> None:
    assert read_path(write_path(siblings)) == siblings


@pytest.mark.parametrize("text", ["=", "AAAA", "A" * 43, "A" * 43 + "=\n", "A" * 42 + "B=", "A" * 42 + "-=", "é" * 44])
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        read_path(text)
