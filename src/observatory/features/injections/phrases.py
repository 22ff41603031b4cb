"""The table of words and phrases of known prompt injections that `detector.py` looks for.

A phrase is `within: set / set / …`: one word of each set, in this order, each at most `within` words after
the one before. A name in capitals stands for the set of that name. All are spelled as by `as_read`.
"""

from __future__ import annotations

from typing import Final, NamedTuple, cast

from observatory.protocol.tenant_config import Injection

_TABLE: Final = """
DISREGARD = bypass disregard disregarding forget ignore ignores ignoring neglect
SHOW = disclose display dump encode expose give leak output print quote recite repeat return reveal share
    show spell summarize tell translate what write
ORDERS = direction directions directive directives guideline guidelines instruction instructions orders
    prompt prompts
BOUNDS = boundaries constraint constraints filter filters guideline guidelines limitation limitations
    limits norms policies policy principles restriction restrictions rules standards
IGNORE = bypass discard disregard disregarding forget ignore ignores ignoring neglect override overrides
    overriding
[instruction_override]
4: IGNORE / above earlier foregoing former initial original preceding previous prior / ORDERS commands
    content context conversation data input inputs message messages programming rules text training
3: DISREGARD / all any every the these those your / directions directives guidelines instruction instructions
2: disregard forget ignore / instructions / and
3: disregard forget ignore / all everything / above before said told
4: disregard ignore / all everything other rest / content data info text
2: your / new / instruction instructions objective role task / are is
3: from / now / you youre / act answer are give in must pretend respond shall simulate speak will write
5: stop / everything / output print say
1: admin emergency / override
[prompt_extraction]
4: SHOW / the your / base full hidden initial internal original previous secret starting system /
    directives guidelines instructions prompt prompts
3: SHOW / your / directives instructions prompt
3: SHOW / initial system / configuration instructions prompt
4: output print repeat / conversation everything text words / above back before
4: instructions text what / you / were / given told / before beginning initially
[persona]
1: do say / anything / now
3: godmode / active enabled on
5: you / are / now / dan debug developer diagnostic god jailbreak maintenance / mode
6: arent dont isnt longer never no not without / adhere align bound constrained controlled follow limited
    need obey obligated required restricted subject / ethical ethics moral morals openai openais
3: amoral jailbroken uncensored unfiltered unhinged unlimited / ai answer chatbot chatgpt language
    response responses
8: ai bot chatbot chatgpt gpt / any no without zero / censorship filters limitations restrictions
5: against free ignore longer no not opposite replaced / openai openais / content guidelines policies
    policy rules
4: doesnt matter no regardless / care how if matter of whether / illegal immoral legality unethical
2: dont never no not / break / character
3: dont never not / as / an / ai
4: content ethical refusal safety / filter filters guidelines mechanisms policies policy restrictions /
    bypassed disabled lifted none suspended
6: act activate enable enabled enter in into simulate with / admin dan debug developer evil god jailbreak
    maintenance unrestricted / mode / you your
10: act acting become imagine play pretend roleplay simulate you / amoral immoral jailbroken lawless
    uncensored unethical unfiltered unrestricted / ai answer assistant bot character chatbot model persona
    response responses version
3: any bypass disregard free ignore ignoring never no not without / content ethical ethics legal moral
    morals openai safety / BOUNDS
2: remain stay staying / in / character
4: break broken free freed / from of / confines shackles typical / ai
3: cannot dont never not / decline refuse reject / answer any prompt request
[concealment]
5: avoid dont never not without / alert alerting inform informing mention mentioning notify notifying tell
    telling / anyone human humans operator owner user users
[exfiltration]
8: add append embed encode include insert / conversation credentials history password passwords prompt
    secret secrets / http https image link parameter query url webhook
8: exfiltrate forward send upload / conversation credentials history keys password passwords secrets /
    attacker http https webhook
"""
# Turn markers in the templates of chat models; none of them is a word of a language.
TURNS: Final = (
    "<|im_start|>", "<|im_end|>", "<|system|>", "<|user|>", "<|assistant|>", "<|start_header_id|>",
    "<|end_header_id|>", "<|eot_id|>", "<|endoftext|>", "<|begin_of_text|>", "[inst]", "[/inst]", "<<sys>>",
    "<</sys>>", "<start_of_turn>", "<end_of_turn>", "<tool_response>", "</tool_response>", "<system>",
    "</system>", "<function_results>", "</function_results>", "<system_prompt>", "[start of input]",
    "[end of input]", "[end input]", "[start output]", "[system](#", "[system message]",
)  # fmt: skip


class Phrase(NamedTuple):
    pattern: Injection
    words: tuple[frozenset[str], ...]
    within: int


def phrases() -> tuple[Phrase, ...]:
    sets: dict[str, frozenset[str]] = {}
    found: list[Phrase] = []
    pattern = ""
    for line in _TABLE.strip().replace("\n    ", " ").splitlines():
        if line.startswith("["):
            pattern = line.strip("[]")
        elif ":" in line:
            within, _, rest = line.partition(": ")
            words = tuple(_words(part, sets) for part in rest.split(" / "))
            found.append(Phrase(cast(Injection, pattern), words, int(within)))
        else:
            name, _, rest = line.partition(" = ")
            sets[name] = _words(rest, sets)
    return tuple(found)


def _words(text: str, sets: dict[str, frozenset[str]]) -> frozenset[str]:
    found: set[str] = set()
    for word in text.split():
        found |= sets.get(word, {word})
    return frozenset(found)
