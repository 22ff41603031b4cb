"""Words that read the same are the same, and no others."""

from __future__ import annotations

import pytest

from observatory.protocol.look_alikes import LOOK_ALIKES
from observatory.protocol.spelling import are_same_name, spellings


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
    assert are_same_name("delete_file", spelt) and are_same_name(spelt, "delete_file")


@pytest.mark.parametrize(
    ("word", "spelt"),
    [
        ("bob", "ᏏⵔᏏ"), ("BOB", "\U000102a1\U000102ab\U000102a1"), ("delete_file", "ᗪⴹᒪⴹ⟙ⴹ\u07faᖴᎥᒪⴹ"),
        ("shell", "ƽᕼ℮ᒪᒪ"), ("pay", "ᑭᗅᎽ"), ("room", "Ʀ〇ዐⲘ"), ("type:clerk", "type\u02d0clerk"),
        ("agent-2", "agent\u02d7Ϩ"), ("agent-1", "agent-\u0661"), ("agent-1", "agent-१"),
        ("deploy_prod", "d\u212eploy_pr\u05e1d"), ("shell", "ꮥhell"),
    ],
)  # fmt: skip
def test_signs_of_any_alphabet_read_as_what_they_look_like_s1402(word: str, spelt: str) -> None:
    """S1402: also of alphabets that few know."""
    assert are_same_name(word, spelt) and are_same_name(spelt, word)


@pytest.mark.parametrize("plain", sorted(LOOK_ALIKES))
def test_every_look_alike_reads_as_its_sign_s1402(plain: str) -> None:
    for sign in LOOK_ALIKES[plain]:
        assert are_same_name(f"a{plain}b", f"a{sign}b"), f"U+{ord(sign):04X}"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("delete_file", "delete-file"), ("mail", "mall"), ("agent-1", "agent-l"), ("agent-0", "agent-o"),
        ("delete", "deletes"), ("шелл", "shell"), ("भाषा", "भषा"), ("\u200b", "a"),
        ("agent-\u0661", "agent-\u0662"), ("agent-\u0661", "agent-2"),
    ],
)  # fmt: skip
def test_what_reads_otherwise_is_another_word_s940(one: str, other: str) -> None:
    """S940: letters of one alphabet stay apart, and marks that make another word do."""
    assert not are_same_name(one, other)


def test_words_of_other_alphabets_compare_without_their_case_s940() -> None:
    """S940."""
    for one, other in (("ηρα", "ΗΡΑ"), ("Иван", "ИВАН"), ("straße", "STRASSE"), ("été", "E\u0301T\u0301É")):
        assert are_same_name(one, other)


def test_words_that_are_drawn_as_nothing_are_one_word_and_no_stem_of_another_s940() -> None:
    """S940."""
    assert spellings("\u200b") == spellings(" ") == spellings("\u2060\u00ad") != spellings("a")
    assert not spellings("a")[0].startswith(spellings("\u200b")[0])
    assert not are_same_name(None, None) and not are_same_name("a", None)
