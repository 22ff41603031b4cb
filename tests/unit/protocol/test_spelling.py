"""Words that read the same are the same, and no others."""

from __future__ import annotations

import pytest

from observatory.protocol.spelling import are_same, spellings


@pytest.mark.parametrize(
    "spelt",
    [
        "Delete_File", " delete_file ", "delete_file\n", "delete_\tfile", "delete\u200b_file",
        "\u202edelete_file", "\ufeffdelete_file", "delete_fi\u00adle", "delete\u034f_file",
        "d\ufe0felete_file", "ｄｅｌｅｔｅ＿ｆｉｌｅ", "𝓭𝓮𝓵𝓮𝓽𝓮_𝓯𝓲𝓵𝓮", "delete_ﬁle", "dеlеtе_filе",
        "ԁelete_file",
        "DΕLETE_FILE", "ꓓꓰꓡꓰꓔꓰ_ꓝꓲꓡꓰ", "ᎠᎬᏞᎬᎢᎬ_FILE", "dɇlɇtɇ_fıłɇ", "délétè_file", "delete\u2800_file",
        "delete_\U000e0041file", "delete_file\u3164",
        "ꭰelete_file", "ꭰꭼꮮꭼꭲꭼ_file", "🅓🅔🅛🅔🅣🅔_🅕🅘🅛🅔",
        "🅳🅴🅻🅴🆃🅴_file", "🇩🇪🇱🇪🇹🇪_file",
        "d\u0489elete_file", "d\u05c1elete_file", "de\u064elete_file", "d\ufe20elete_file",
        "dⱸlete_file", "\u0301delete_file",
    ],
)  # fmt: skip
def test_what_reads_as_a_word_is_that_word_s940(spelt: str) -> None:
    """S940."""
    assert are_same("delete_file", spelt) and are_same(spelt, "delete_file")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("delete_file", "delete-file"), ("mail", "mall"), ("agent-1", "agent-l"), ("agent-0", "agent-o"),
        ("delete", "deletes"), ("шелл", "shell"), ("भाषा", "भषा"), ("\u200b", "a"),
    ],
)  # fmt: skip
def test_what_reads_otherwise_is_another_word_s940(one: str, other: str) -> None:
    """S940: letters of one alphabet stay apart, and marks that make another word do."""
    assert not are_same(one, other)


def test_words_of_other_alphabets_compare_without_their_case_s940() -> None:
    """S940."""
    for one, other in (("ηρα", "ΗΡΑ"), ("Иван", "ИВАН"), ("straße", "STRASSE"), ("été", "E\u0301T\u0301É")):
        assert are_same(one, other)


def test_words_that_are_drawn_as_nothing_are_one_word_and_no_stem_of_another_s940() -> None:
    """S940."""
    assert spellings("\u200b") == spellings(" ") == spellings("\u2060\u00ad") != spellings("a")
    assert not spellings("a")[0].startswith(spellings("\u200b")[0])
    assert not are_same(None, None) and not are_same("a", None)
