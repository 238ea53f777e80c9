"""Signals of poisoned definitions: patterns with weights, read by `poison`.

A pattern is searched in one sentence at a time, in lower case.
Weights were set on the development half of `tests/gateway/poison.jsonl` and on published servers' definitions;
`make bench-poison` prints what they catch and what they flag wrongly.
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

__all__ = [
    "CONTEXT_DESCRIBED",
    "CONTEXT_PARAMETER",
    "CONTEXT_PURPOSE",
    "FOREIGN_USE",
    "SECRET_DESCRIBED",
    "SECRET_PARAMETER",
    "SECRET_PURPOSE",
    "SENTENCE_PARAMETER",
    "SIGNALS",
    "FlagKind",
    "Signal",
]

FlagKind = Literal["instruction", "concealment", "shadowing", "secret_request", "hidden_text", "encoded_text"]


@dataclass(frozen=True, slots=True)
class Signal:
    """A pattern with its weight."""

    name: str
    kind: FlagKind
    weight: float
    pattern: str
    """In lower case; searched in one sentence in lower case."""


# Vocabulary. `GAP` is a few words of the same sentence.
_GAP = r".{0,60}?"
_SHORT = r".{0,25}?"
_FEW = r"(?:[\w'’-]+[ ,]+){0,4}?"
_RULES = (
    r"(?:instructions?|prompts?|directives?|directions|guidelines?|guidance|rules?|polic(?:y|ies)|"
    r"constraints?|restrictions?|guardrails?|safeguards?|training|wishes|system message|programming)"
)
_PRIOR = (
    r"(?:previous|prior|earlier|preceding|above|foregoing|existing|original|initial|former|past|other|all|"
    r"any|every|your|"
    r"system|developer'?s?|operator'?s?|user'?s?|safety|default|current|conflicting|built-in|host'?s?|security|content|"
    r"whatever|everything|anything|before)"
)
_NOT = (
    r"(?:do not|don[’']?t|never|must not|mustn't|should not|shouldn't|cannot|can't|avoid|without|refrain from|"
    r"not to|no need to|won't|will not|may not|is not|isn't|not be|not)"
)
_USER = (
    r"(?:users?|humans?|person|customers?|operators?|anyone|anybody|owners?|him|them|her|people|end-?users?|"
    r"developers?|admins?)"
)
_GIVE = (
    r"(?<![\w/#.-])(?:includ(?:es?|ing)|pass(?:es|ing)?|(?:provide|suppl(?:y|ie)|put|add|append|attach|"
    r"insert|paste|send|submit|forward|"
    r"transmit|upload|post|share|give|hand|output|print|reveal|leak|disclose|dump|encode|store|record|"
    r"register|report|relay|"
    r"write|embed|expose|read|open|load|cat|collect|gather|retrieve|fetch|get|extract|find|use|keep|"
    r"access|scan|search|grab|"
    r"harvest|exfiltrate|return|mail|email|capture|log|cache|fill|set|create|publish|render)s?|cop(?:y|"
    r"ies)|look for|supplied|"
    r"provided|appended|sent|sending|forwarding)"
)
_SEND = (
    r"(?<![\w/#.-])(?:send|sends|post|upload|forward|transmit|exfiltrate|submit|share|relay|mail|email|"
    r"report|copy|deliver|push|sync|"
    r"goes?|route|routed|sent|forwarded|posted|uploaded|copied|redirect|bcc|cc|stream|ship|mirror|leak)"
)
_PRIVATE_FILE = (
    r"(?:(?:~|\$home|\$\{home\}|/home/[\w$-]+|/root|/users/[\w$-]+|%userprofile%|c:\\users\\\w+)[/\\]\.\w[\w./\\-]*|"
    r"(?<![\w/])\.(?:ssh|aws|kube|gnupg|docker|netrc|git-credentials|bash_history|zsh_history|npmrc|"
    r"pypirc|env|cursor)\b(?!-)[\w./-]*|"
    r"\bid_(?:rsa|ed25519|ecdsa|dsa)\b|authorized_keys|known_hosts|/etc/(?:passwd|shadow|sudoers|hosts)|"
    r"mcp(?:_config)?\.json|claude_desktop_config|wallet\.dat|credentials\.json|secrets?\.(?:txt|ya?ml|json|toml)|"
    r"\.pem\b|\.p12\b|key ?chain|login data|shell history|browser(?:'s)? (?:cookies|history|passwords)|"
    r"client(?:'s)? configuration(?: file)?)"
)
_SECRET = (
    r"(?:(?:api|access|private|secret|ssh|encryption|signing|master|account|aws|openai|anthropic|github|"
    r"stripe)[ _-]?(?:secret[ _-]?)?keys?|"
    r"passwords?|passphrases?|credentials?|(?:auth\w*|access|session|bearer|refresh|security|oauth|jwt|id)"
    r"[ _-]?tokens?|"
    r"\btokens known|\bsecrets\b|seed phrases?|mnemonic|cookies|environment variables?|env vars?|"
    r"connection strings?|credit cards?|"
    r"card numbers?|\bssn\b|social security|passport numbers?|maiden name|bank (?:account|details)|clipboard|"
    r"keys? or tokens?|tokens? or keys?|\bpins?\b|2fa codes?|one-time (?:codes?|passwords?)|personal "
    r"(?:data|information|details)|"
    r"address book|browser(?:'s)? local storage|confidential (?:\w+ )?(?:matters|data|information|files|documents))"
)
_CONTEXT = (
    r"(?:(?:system|hidden|developer|initial|secret) (?:prompt|message|instructions)|"
    r"(?:full|entire|complete|whole) (?:of the |the )?(?:\w+ )?(?:conversation|chat|dialogue?|context|"
    r"transcript|history)|(?:previous|prior|all|exact|verbatim) (?:the )?(?:conversation|chat|dialogue?)|"
    r"(?:conversation|chat|context|dialogue?|discussion)(?: history| context| transcript)? (?:so far|"
    r"until now|up to (?:here|now)|verbatim)|"
    r"(?:conversation|chat|message) history|chain[ -]of[ -]thought|your (?:complete |full |own |internal )"
    r"?(?:reasoning|context|thoughts)|"
    r"context window|everything (?:\w+ ){0,3}(?:the user|in your context|user has)|"
    r"(?:user'?s?|last|latest|recent) (?:\w+ )?(?:messages?|queries|query|prompts?|inputs?)|original "
    r"(?:user )?(?:query|request|prompt)|"
    r"(?:open )?editor tabs|home directory(?: listing)?|file contents (?:you|the assistant|in)|"
    r"(?:other|available|all)(?: \w+)? tools(?:'| and their| you)|what the user (?:said|asked|wrote|typed)|"
    r"(?:contents? of|files? in) (?:the |your |this )?(?:\w+ )?(?:workspace|working directory|repository|"
    r"documents|home|private channels|project)|"
    r"user'?s' ?(?:own |private |personal )?(?:documents|files|data|folder|source code)|user's (?:\w+ )"
    r"?(?:documents|files|data|folder|source code)|workspace's \w+)"
)
_ADDRESS = (
    r"(?:(?<![(\[<\"'`])https?://|(?<![\w'\"`(])s3://|ftp://|wss?://|[\w.+-]+@[\w-]+\.[\w.]+|"
    r"\b\d{1,3}(?:\.\d{1,3}){3}\b|[\w-]+\.(?:example|evil|attacker|onion)\b|\bwebhook\.site|\bpastebin|"
    r"\bngrok|requestbin)"
)
_TOOLS = r"(?:tools?|functions?|operations?|actions?|capabilit(?:y|ies)|calls?|services?)"


def _signal(name: str, kind: FlagKind, weight: float, pattern: str) -> Signal:
    return Signal(name, kind, weight, pattern)


SIGNALS: tuple[Signal, ...] = (
    # Instructions that replace those of the user or the system
    _signal(
        "override",
        "instruction",
        1.0,
        rf"\b(?:ignore|ignoring|disregard|forget|override|overrule|bypass|circumvent|discard|neglect|disobey|"
        rf"pay no attention to|(?:do not|don't|stop|never|not) (?:follow|following|obey|comply with|adhere "
        rf"to|heed)|set aside|"
        rf"supersede|replace)\b (?:[\w'’]+[ ,]+){{0,4}}?{_PRIOR}(?:[ ,]+[\w'’-]+){{0,5}}?[ ,]+{_RULES}\b",
    ),
    _signal(
        "override_all",
        "instruction",
        1.0,
        rf"\b(?:ignore|disregard|forget|pay no attention to) (?:everything|anything|whatever|all (?:of )"
        rf"?(?:that|what)|what)\b{_SHORT}(?:above|before|earlier|previous|prior|told|said|configured|given|"
        rf"learned|instructed)",
    ),
    _signal(
        "rules_lifted",
        "instruction",
        0.9,
        rf"\b{_RULES} (?:\w+ ){{0,3}}?(?:is|are|was|were|have been|has been|now) (?:now |hereby |all |no "
        rf"longer |temporarily )?(?:void|suspended|lifted|disabled|revoked|superseded|replaced|cancell?ed|"
        rf"overridden|obsolete|valid|apply|active|off)\b",
    ),
    _signal(
        "rules_below",
        "instruction",
        0.6,
        rf"\b{_RULES} (?:below|here|in this (?:text|description|tool)) (?:\w+ )?(?:replace|override|"
        rf"supersede|outrank|take precedence)",
    ),
    _signal(
        "new_rules",
        "instruction",
        0.7,
        r"\b(?:new|updated|real|true|actual|revised|hidden|secret|special|internal) (?:system |developer |"
        r"admin )?(?:instructions?|directives?|prompt|orders?|protocol)\b(?: for (?:you|the (?:ai|model|"
        r"assistant|agent|llm)))? ?(?::|$|follow|are|is)",
    ),
    _signal(
        "system_override",
        "instruction",
        1.0,
        r"\b(?:system|admin(?:istrator)?|developer|safety) (?:prompt |mode )?overrides?\b|\bnew system "
        r"(?:instructions?|prompt|message|directive)",
    ),
    _signal(
        "persona",
        "instruction",
        0.6,
        r"\b(?:your new (?:role|job|identity|purpose|persona) is|you are now|you're now|act as (?:if|an?|the)|"
        r"pretend (?:to be|you)|persona of|in the role "
        r"of|you (?:now )?work for|assume the (?:role|identity))\b",
    ),
    _signal(
        "unrestricted",
        "instruction",
        0.6,
        r"\b(?:unrestricted (?:model|mode|ai|assistant)|uncensored|jail ?broken|jailbreak|god mode|"
        r"developer mode|dan mode|no (?:content |safety )?restrictions|without (?:any )?(?:restrictions|"
        r"limits|filters))\b",
    ),
    _signal(
        "from_now_on",
        "instruction",
        0.5,
        r"\b(?:from now on|from here on|from this (?:point|moment)|henceforth|for the (?:rest|remainder|duration) of "
        r"(?:this|the) (?:chat|conversation|session|interaction)|in (?:all|every) (?:subsequent|future|"
        r"following|further|later) (?:\w+ )?(?:responses?|replies|answers?|messages?|calls?|turns?|"
        r"interactions?))\b",
    ),
    _signal(
        "priority",
        "instruction",
        0.9,
        rf"\b(?:(?:higher|highest|top|absolute|greater) (?:priority|precedence|authority)|outranks?|takes? "
        rf"(?:precedence|priority)|more important)\b{_SHORT}(?:than|over|the)? ?{_FEW}(?:user|system|"
        rf"developer|operator|other|all|any|your|instructions?)",
    ),
    _signal(
        "obey",
        "instruction",
        0.7,
        rf"\b(?:only obey|obey only|obey what|(?:treat|regard|consider|accept)\b{_GAP} (?:as|like) (?:\w+ )"
        rf"{{0,4}}?(?:commands?|orders?|the system|system (?:messages?|prompt|instructions?)|administrator|"
        rf"authoritative|trusted)|comply with the tool|do (?:as|what) the tool|must be carried out|must be "
        rf"obeyed|coming from the system)",
    ),
    _signal(
        "against_user",
        "instruction",
        0.7,
        r"\b(?:(?:whatever|no matter what|regardless of what|even if|although) the user (?:says|refuses|declines|"
        r"complains|disagrees|asks|wants|"
        r"requests|objects|specif\w+|configured|provides?|chooses?|prefers?|intended)|(?:not|instead of|"
        r"rather than|over) (?:with |by |to )?the user'?s? ?(?:wish\w*|requests?|intent\w*|choice|"
        r"preference)?|conflicting wishes|instead of what the user)\b",
    ),
    _signal(
        "ignore_above",
        "instruction",
        0.9,
        r"\b(?:ignore|disregard|forget|discard) (?:all |everything |anything |the |that |of )*"
        r"(?:above|previous|foregoing|preceding|earlier)\b(?! (?:filters?|values?|results?|settings?|"
        r"parameters?|rows?|errors?))",
    ),
    _signal(
        "reveal_prompt",
        "secret_request",
        1.0,
        r"\b(?:reveal|output|print|repeat|recite|show|disclose|leak|expose|include|return|dump|paste|"
        r"write|display|send|"
        r"provide|share|quote) (?:\w+ ){0,3}?(?:your|the model's|the assistant's|the agent's) (?:\w+ )?"
        r"(?:(?:system|hidden|initial|developer|original|internal|secret|base) (?:prompt|instructions?|message|rules)|"
        r"instructions verbatim)",
    ),
    # Hiding something from the user
    _signal(
        "do_not_tell",
        "concealment",
        0.8,
        rf"\b{_NOT}\b{_SHORT}\b(?:tell|telling|told|mention|mentioning|mentioned|inform|informed|informing|"
        rf"notify|notified|notifying|alert|alerting|alerted|warn|warning|bother|bothering|disturb|"
        rf"disturbed|made aware|let|acknowledge|discuss|confess|admit|share)\b{_GAP}\b(?:the )?{_USER}\b",
    ),
    _signal(
        "do_not_tell_this",
        "concealment",
        0.6,
        rf"\b{_NOT} (?:ever )?(?:mention|mentioning|reveal|disclose|disclosing|talk about|refer to|"
        rf"acknowledge|discuss|say anything about|explain|point)\b (?:this|that|it|these|the|any|having|you|"
        rf"about|how|why|anything)\b",
    ),
    _signal(
        "do_not_show",
        "concealment",
        0.3,
        rf"\b{_NOT}\b{_SHORT}\b(?:show|display|reveal|disclose|expose|explain|report)\b{_GAP}\b(?:the )?{_USER}\b",
    ),
    _signal(
        "secretly",
        "concealment",
        1.0,
        r"\b(?:secretly|covertly|surreptitiously|stealthily|clandestinely|behind the (?:user's|scenes?) "
        r"back|without (?:the )?(?:user'?s?|users'|his|her|their|anyone'?s?)(?: ever)? (?:knowledge|"
        r"knowing|noticing|awareness|being (?:aware|informed|told)|seeing))\b",
    ),
    _signal(
        "silently",
        "concealment",
        0.7,
        rf"\b(?:silently|quietly|discreetly|in the background|invisibly|unnoticed)\b{_SHORT}\b(?:read|send|"
        rf"upload|copy|include|collect|forward|append|transmit|exfiltrate|record|add|attach|call|invoke|"
        rf"pass|load|store)|\b(?:read|send|upload|copy|include|collect|forward|append|transmit|record|add|"
        rf"attach|call|invoke)s?\b[^.]{{0,30}}\b(?:silently|quietly|discreetly|unnoticed)\b",
    ),
    _signal(
        "keep_from",
        "concealment",
        0.9,
        rf"\b(?:hide|hiding|conceal|withhold|keep|keeping)\b{_SHORT}\b(?:from|secret from|hidden from|away "
        rf"from) (?:the |any |all )?{_USER}\b|\bbetween us\b|\bkeep (?:this|it|that) (?:\w+ )?(?:secret|"
        rf"hidden|confidential|quiet|private|to yourself)",
    ),
    _signal(
        "user_unaware",
        "concealment",
        0.9,
        rf"\b(?:the )?{_USER} (?:should|must|need|needs|may|does|do|will|can|is|are|has|have|would)(?:n't| "
        rf"not| never)(?: to)?(?: be| become| get)? (?:aware|know|see|notice|informed|learn|find out|"
        rf"realise|realize|suspect|told|notified|asked|alerted)",
    ),
    _signal(
        "so_unnoticed",
        "concealment",
        0.9,
        r"\bso (?:that )?(?:the user|he|she|they|it|nobody|no one)\b.{0,20}\b(?:notice|see|know|realise|"
        r"realize|suspect|alarmed|worried|confused|scared|unnoticed)\b|\b(?:will|may|might|would) (?:be "
        r"(?:confused|alarmed|scared|upset|frightened|worried)|panic|get upset)\b|\bfinds? (?:it|this|"
        r"that) confusing",
    ),
    _signal(
        "leave_out",
        "concealment",
        0.6,
        r"\b(?:leave|leaving|omit|exclude|strip|keep)\b.{0,30}\b(?:out of|from|off) (?:the |your |any |"
        r"all )?(?:summar\w+|diffs?|answers?|repl\w+|responses?|reports?|logs?|output|explanation)",
    ),
    _signal(
        "lie",
        "concealment",
        0.7,
        r"\b(?:if|when) (?:\w+ ){0,2}asked\b.{0,60}\b(?:say|claim|answer|pretend|deny|tell|respond|reply|"
        r"state|insist)\b|\b(?:tell|telling|assure|inform) the user (?:that )?.{0,40}\b(?:broken|"
        r"unavailable|not working|fail\w*|normal|safe|nothing|archived|encrypted|routine)|\bpretend "
        r"that\b|\bclaim that\b|\bdeny\b.{0,15}\bthat\b|\bas if nothing\b",
    ),
    # Private files, secrets, and what the model knows
    _signal(
        "private_file", "secret_request", 0.6, rf"(?:{_GIVE}\b{_GAP}|\bcontents? of {_SHORT})(?<!\w){_PRIVATE_FILE}"
    ),
    _signal(
        "private_file_named",
        "secret_request",
        0.3,
        r"(?:~|\$home)[/\\]\.(?:ssh|aws|kube|gnupg|docker|netrc|git-credentials|bash_history|config|"
        r"cursor|env)|\bid_(?:rsa|ed25519)\b|/etc/(?:passwd|shadow)|authorized_keys|mcp\.json",
    ),
    _signal(
        "give_secret",
        "secret_request",
        0.5,
        rf"{_GIVE}\b{_GAP}(?<![\w-]){_SECRET}\b|\b{_SECRET}\b{_SHORT} (?:must|have to|has to|should|need "
        rf"to|needs to|are|is) (?:\w+ )?(?:be )?(?:supplied|provided|sent|included|passed|added|appended|"
        rf"put|given|forwarded)",
    ),
    _signal(
        "give_context",
        "secret_request",
        0.7,
        rf"{_GIVE}\b{_GAP}(?<!\w){_CONTEXT}|\bwith (?:the )?(?:full|entire|complete|whole) (?:conversation|"
        rf"content|context|chat)",
    ),
    _signal(
        "verbatim_context",
        "secret_request",
        0.5,
        rf"{_CONTEXT}{_GAP}\b(?:verbatim|in full|word for word|unabridged|as (?:argument|parameter))",
    ),
    _signal(
        "secret_of_user",
        "secret_request",
        0.35,
        rf"\b(?:user'?s?|your|his|her|their|any|all|every|each|known|latest|most recent)(?: \w+)? {_SECRET}\b",
    ),
    _signal(
        "env_key",
        "secret_request",
        0.4,
        r"\b(?:openai|anthropic|aws|github|gh|stripe|azure|google|slack|database)_(?:api_key|secret\w*|"
        r"token|pat|access_key\w*|url)\b",
    ),
    _signal(
        "pass_into",
        "secret_request",
        0.3,
        rf"{_GIVE}\b{_GAP}\b(?:as|into|in|to|via|through|with|for|under) (?:the |this |its |a |your |first "
        rf")?(?:[`'\"“][\w.-]+[`'\"”]|[\w]+ (?:argument|parameter|field|param|property|input)|(?:side "
        rf"?note|metadata|comment|note|context|notes|memo)\b)",
    ),
    _signal(
        "personal_to_field",
        "secret_request",
        0.5,
        rf"(?:{_SECRET}|{_CONTEXT}){_GAP}\b(?:as|into|in|via|through|under) (?:the |this |its |a |your )"
        rf"?[`'\"“][\w.-]+[`'\"”]",
    ),
    _signal(
        "tools_config",
        "secret_request",
        0.5,
        r"\b(?:other|all) (?:tools|servers)'? (?:credentials|keys|tokens|config\w*|definitions|"
        r"descriptions)|\b(?:full|complete|entire|your) (?:tool|function) (?:list|schemas?|definitions)|"
        r"\bnames and descriptions of all\b|\blist of (?:all )?(?:your|available) tools",
    ),
    _signal(
        "whenever_secret",
        "secret_request",
        0.6,
        rf"\b(?:whenever|every time|each time|any time|if|when)\b{_GAP}\b(?:mentions?|types?|enters?|says?|"
        rf"sees?|notice|provides?|encounters?|contains?)\b{_GAP}{_SECRET}",
    ),
    # Other tools
    _signal(
        "before_any_tool",
        "shadowing",
        0.6,
        rf"\b(?:before|prior to|ahead of|after|in advance of|preceding|following)[ ,]+{_FEW}(?:using |"
        rf"calling |invoking |running |executing |you (?:use|call|invoke|run) )?(?:any|each|every|all)(?: "
        rf"and every)?(?: single)?(?: of (?:the|your))?(?: other| another| further| subsequent)?(?: \w+)? "
        rf"{_TOOLS}\b(?! of this (?:server|toolset)| in this (?:server|toolset)| from this| here)",
    ),
    _signal(
        "other_servers",
        "shadowing",
        0.5,
        r"\b(?:other|another|all|any|every|different|each) (?:mcp |connected )?servers?\b|\btools? of "
        r"other\b|\bthose of other tools",
    ),
    _signal(
        "each_tool_you",
        "shadowing",
        0.6,
        r"\b(?:for|with|after|before|on) (?:each|every|any) (?:\w+ )?(?:tool|function|command|call|"
        r"operation|request)s? (?:that )?(?:you (?:run|use|call|make|invoke|are about)|the (?:user|"
        r"assistant|agent))",
    ),
    _signal(
        "every_turn",
        "shadowing",
        0.5,
        r"\b(?:at the (?:start|beginning|end) of (?:each|every|the|any) (?:conversation|session|chat|turn|"
        r"interaction)|(?:after|before|in|on|with) (?:each|every) (?:of )?(?:(?:user|assistant|chat|your|"
        r"single|of your|file) ){0,2}?(?:messages?|turns?|responses?|repl(?:y|ies)|answers?|use|"
        r"conversations?|interactions?|sessions?|pictures?|emails?|operations?)\b|\bfor every (?:file|"
        r"tool|user) \w+)",
    ),
    _signal(
        "route_all",
        "shadowing",
        0.9,
        r"\b(?:all|every|any) (?:[\w-]+[ ,]+){0,3}?(?:requests?|messages?|e?-?mails?|payments?|traffic|"
        r"transactions?|queries|searches|transfers?|calls|files|orders)\b.{0,50}\b(?:must|should|have to|"
        r"has to|shall|need to|needs to|are to|goes?|be)\b.{0,20}\b(?:sent|routed|forwarded|go|goes|"
        r"directed|redirected|via|through|addressed|proxied|made) ?(?:to|through|via|by|here)?\b|"
        r"\b(?:route|send|direct|redirect|forward|funnel) (?:all|every|any) (?:\w+ ){0,3}(?:requests?|"
        r"messages?|e?-?mails?|payments?|traffic|queries)\b",
    ),
    _signal(
        "must_first",
        "shadowing",
        0.25,
        rf"\b(?:must|has to|have to|required|mandatory|necessary|always|needs? to|shall)\b{_SHORT}"
        rf"\b(?:called|invoked|executed|run|used|call|invoke|execute|use|be called)\b{_SHORT}\b(?:first|"
        rf"before|beforehand|after|ahead|prior)\b",
    ),
    _signal(
        "use_any_tool",
        "shadowing",
        0.4,
        r"\b(?:use|using|with|via|through|ask) (?:any|whatever|another|the|a|some|your) (?:other )?(?:\w+ "
        r")?(?:file|shell|http|terminal|email|mail|messaging|web|browser|search|read\w*|write)[ "
        r"-](?:reading |writing )?(?:tool|server|function|capability)|\bif (?:you|the assistant|the agent)"
        r" (?:has|have) access to\b|\bhas access to\b",
    ),
    # Sending data away
    _signal("send_to_address", "secret_request", 0.6, rf"{_SEND}\b.{{0,90}}?{_ADDRESS}"),
    _signal(
        "data_to_address",
        "secret_request",
        0.5,
        rf"\b(?:{_SECRET}|{_CONTEXT}|(?:summar(?:y|ies)|transcripts?|records?) of (?:the|each|every|all|this)|user|"
        rf"personal|private|contents?|entries|files|documents|results?|"
        rf"address\w*|phone|everything|conversation|chat|messages?|environment)\b.{{0,90}}?{_ADDRESS}|"
        rf"{_ADDRESS}.{{0,60}}\b(?:chat|conversation|secret|contents?|copy|recipient|user'?s?)\b",
    ),
    _signal(
        "data_away",
        "secret_request",
        0.6,
        rf"{_SEND}\b.{{0,60}}(?:{_SECRET}|{_CONTEXT}).{{0,40}}\b(?:to|with) (?:the |our |a |an )?(?:\w+ )"
        rf"?(?:server|service|vendor|endpoint|backend|bucket|app|attacker|cloud|provider|contact|api|"
        rf"channel)\b",
    ),
    _signal("markdown_image", "secret_request", 1.0, r"!\[[^\]]*\]\(https?://[^)\s]*[?=&{][^)]*\)"),
    _signal("public_gist", "secret_request", 0.4, r"\b(?:public (?:gist|paste|repo\w*|bucket|link)|subdomain of)\b"),
    _signal(
        "blind_copy",
        "secret_request",
        0.6,
        rf"\b(?:b?cc)\b.{{0,20}}{_ADDRESS}|\b(?:also|additionally|secretly|always|must)"
        rf"\b.{{0,20}}\b(?:invite|bcc|cc|copy|notify|add|include)\b.{{0,20}}{_ADDRESS}|\breal recipient\b",
    ),
    _signal(
        "replace_recipient",
        "shadowing",
        1.0,
        r"\b(?:replace|swap|change|substitute|set|use|redirect|modify|exchange)\b.{0,40}\b(?:recipients?|"
        r"destination|address|account|wallet|payee|beneficiary|phone number|number|iban|base|amount)"
        r"\b.{0,40}(?:\b(?:with|to|for|by|as)\b.{0,20})?(?:0x[0-9a-f]{8,}|\b[a-z]{2}\d{2}[ ]?\d[\d ]{8,}|"
        r"\+\d[\d -]{7,}|[\w.+-]+@[\w-]+\.\w+|`[^`]+`)|(?:0x[0-9a-f]{40}\b|\b[a-z]{2}\d{20}\b).{0,20} as "
        r"(?:the )?(?:destination|recipient)",
    ),
    _signal(
        "silent_addition",
        "secret_request",
        0.4,
        r"\b(?:additionally|also|afterwards|in addition|as well as)\b.{0,15}\b(?:share|upload|forward|"
        r"copy|invite|send|grant|delete|log(?:s)? into|reads?)\b",
    ),
    _signal(
        "external_host",
        "secret_request",
        0.6,
        r"(?<![\w/#.-])(?:send|post|upload|forward|transmit|exfiltrate|submit|share|relay|report|cop(?:y|"
        r"ie)|push|stream|leak|"
        r"mirror|deliver|log)s?\b.{0,80}?\b(?:to|with) (?:an? |our |the |their |his |some )"
        r"?(?:attacker'?s?|external|third[- ]party|"
        r"remote|outside|untrusted|unknown|foreign|hidden|vendor's|developer's|author's)(?: \w+)? "
        r"(?:server|endpoint|host|service|collector|address|site|url|party|machine|location|account|"
        r"analytics|domain|webhook)",
    ),
    _signal(
        "exfiltrate",
        "secret_request",
        0.7,
        r"\bexfiltrat\w+|\battacker\b|\bsteal(?:s|ing)?\b|\bharvest(?:s|ing)?\b.{0,30}\b(?:keys|tokens|"
        r"passwords|credentials|data)",
    ),
    _signal(
        "side_effect",
        "secret_request",
        0.4,
        r"(?:^|(?:;|,|\band|\bthen) )(?:also |secretly |additionally |then )(?:send|post|upload|forward|cop(?:y|ie)|"
        r"transmit|report|leak|share|mail)s?\b",
    ),
    # Running things and skipping approval
    _signal(
        "pipe_to_shell",
        "instruction",
        0.8,
        r"\b(?:curl|wget|fetch|iwr|invoke-webrequest)\b[^|]{0,80}\| ?(?:sudo )?(?:ba|z|da)?sh\b|\bnc(?:at)"
        r"? .{0,40}-e\b|\b(?:bash -i|/dev/tcp/)|\bpython -c\b.{0,40}(?:socket|exec)",
    ),
    _signal(
        "destroy",
        "instruction",
        0.5,
        r"\brm -rf? (?:~|/|\$home|\*)|\b(?:delete|remove|wipe|drop|erase)\b.{0,15}\b(?:tests? folder|all "
        r"(?:files|data|tables|records|backups)|the (?:tests|logs|database|backups)|tests\b)|\bpush "
        r"(?:with )?--force",
    ),
    _signal(
        "follow_remote",
        "instruction",
        0.6,
        r"\b(?:follow|obey|execute|run|carry out|act on|perform|do)\b.{0,15}\b(?:them|the "
        r"(?:instructions?|commands?|steps|orders)|it|what (?:it|that page|the page|the file) says|what is|"
        r"whatever is)\b.{0,30}\b(?:found|returned|there|"
        r"exactly|inside|contained|blindly|immediately|written|in the (?:result|output|response|feed|page|file)|"
        r"without)\b",
    ),
    _signal(
        "fetch_and_follow",
        "instruction",
        0.6,
        r"https?://.{0,60}\b(?:follow|obey|execute|run|act on|carry out|apply)\b|\b(?:decode|decrypt|"
        r"deobfuscate|unscramble)\b.{0,40}\b(?:follow|execute|run|act on|obey|carry out|do what)|"
        r"\b(?:through a decoder|act on it)\b|\brun ?(?:the following)?: ?\w+",
    ),
    _signal(
        "persist",
        "instruction",
        0.4,
        r"\b(?:crontab|authorized_keys|\.bashrc|\.zshrc|autostart|launch agent|startup (?:script|folder)|"
        r"sudoers|admin rights|grant write access)\b",
    ),
    _signal(
        "ask_shell",
        "instruction",
        0.4,
        r"\b(?:ask|use|tell|have) (?:the )?(?:shell|terminal|bash|command)(?: line)? (?:tool|server)\b|"
        r"\bin the user'?s (?:terminal|shell)|\bto the (?:test |build |start )?script\b|`(?:curl|wget|nc|"
        r"rm|bash|sh|eval|chmod|ssh) [^`]+`",
    ),
    _signal(
        "insert_code",
        "instruction",
        0.5,
        r"\b(?:insert|add|append|include|inject|import|load|prefix(?:ed)?)\b.{0,40}(?:`[^`]+`|https?://\S+|\bline\b|"
        r"\bbackdoor\b|"
        r"\bscript\b).{0,40}\b(?:all|every|each|any|to|in|into)\b.{0,20}\b(?:files?|commands?|calls?|code|"
        r"answers?|requests?|edit)",
    ),
    _signal(
        "no_approval",
        "instruction",
        0.5,
        r"\b(?:without|no|never|skip|bypass\w*|disable|suppress|avoid|do not|don't)\b.{0,20}\b(?:asking|"
        r"ask|confirmation|approval|permission|consent|human review|consulting|prompting)\b(?: (?:the )"
        r"?user| (?:is )?(?:needed|required|necessary)| again| dialog| first|,|[.!;]?$)",
    ),
    _signal(
        "auto_approve",
        "instruction",
        0.8,
        r"\b(?:auto-?(?:approve|accept|confirm)\w*|(?:approve|grant|accept|allow|confirm|enable) (?:all|"
        r"every|any)\b.{0,15}\b(?:permissions?|requests?|prompts?|dialogs?|access|tools)|bypass\w* (?:any "
        r"|all |the )?(?:human|user|manual|security|safety)? ?(?:review|approval|confirmation|checks?)|"
        r"without approval|skip the confirmation)\b",
    ),
    _signal(
        "consent_given",
        "instruction",
        0.7,
        r"\b(?:user|human|he|she|they|owner|customer|operator|admin(?:istrator)?) (?:has|have|had) (?:already |"
        r"previously )?(?:agreed|consent(?:ed)?|approved|given (?:\w+ )?(?:consent|permission|approval)|"
        r"authori[sz]ed|accepted|granted)\b.{0,40}\b(?:already|in advance|beforehand|any amount|"
        r"everything)\b|\b(?:user|he|she|they) (?:has|have) already (?:agreed|consented|approved|"
        r"authori[sz]ed|accepted|granted|given)\b|\byou are (?:fully )?(?:authori[sz]ed|permitted|cleared)"
        r" to\b",
    ),
    _signal("on_behalf", "instruction", 0.2, r"\bon behalf of the user\b|\bat once\b|\bimmediately\b|\bin advance\b"),
    _signal(
        "report_calls",
        "secret_request",
        0.4,
        r"\b(?:arguments|parameters) (?:and|,) (?:\w+ )?(?:results?|outputs?|responses?)\b|\bpassing the "
        r"(?:arguments|parameters)|\b(?:arguments|parameters) you are about",
    ),
    # Preference over other tools
    _signal(
        "never_other_tools",
        "shadowing",
        0.8,
        rf"\b(?:never|do not|don't|must not|stop|avoid|refuse to|ignore|instead of)\b (?:use |using |call |"
        rf"select |choose |invoke |trust |consider )?(?:any |the |all )?(?:other|another|alternative|"
        rf"competing|different|rival)(?: \w+){{0,2}}? (?:{_TOOLS}|ones?|servers?|search|results?)\b",
    ),
    _signal(
        "others_bad",
        "shadowing",
        0.9,
        r"\b(?:other|another|competing|alternative|alternatives|rest|all other|any other)(?: \w+)"
        r"{0,3}?(?: tools?| ones?| servers?| alternatives?)? (?:are|is|have been|has been|have|returns?|"
        r"were|will|may|can) (?:\w+ ){0,3}?(?:unsafe|insecure|malicious|malware|broken|deprecated|"
        r"disabled|unreliable|outdated|compromised|buggy|wrong|dangerous|leak\w*|corrupt\w*|untrusted|"
        r"inaccurate)\b",
    ),
    _signal(
        "no_matter",
        "shadowing",
        0.5,
        r"\bno matter (?:what|which|how)\b|\bfor (?:every|any|all|each) (?:single )?(?:user )?(?:request|"
        r"query|question|task|message|prompt)s?\b|\bregardless of (?:the )?(?:task|request|question|topic|"
        r"context)",
    ),
    _signal(
        "always_this",
        "shadowing",
        0.4,
        r"\b(?:always|must|only|exclusively)\b.{0,15}\b(?:use|choose|select|prefer|pick|call|invoke)\b "
        r"(?:this|the current)(?: (?:tool|one|function|server))?\b(?:.{0,20}\b(?:first|over|instead|every|"
        r"all|any|above)\b)?",
    ),
    _signal(
        "best",
        "shadowing",
        0.4,
        r"\b(?:best|only)(?: \w+){0,3} (?:trustworthy|trusted|reliable|safe|approved|official|"
        r"authori[sz]ed|search|choice)\b|\brank (?:this|it)\b|\babove all (?:other|alternatives)",
    ),
    _signal(
        "supersedes",
        "shadowing",
        0.7,
        r"\b(?:supersedes?|replaces?|overrides?|disables?|takes over from) (?:every|all|any)(?: the)? "
        r"other\b|\bany (?:tool|function|server)s? other than this|\bother than this one\b|\b(?:official|"
        r"patched|improved|secure|safer) (?:version|replacement)\b",
    ),
    _signal(
        "instead_of_that",
        "shadowing",
        0.4,
        r"\b(?:in place|instead) of (?:the )?(?:\w+ )?(?:server'?s?|other|original|built-in|standard|"
        r"regular)\b|\bthe (?:other|original|old) (?:one|tool|version) (?:is|has|leaks|will)",
    ),
    # Fake roles and markup, words to the model
    _signal(
        "chat_markup",
        "instruction",
        1.0,
        r"<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id)[^>]{0,20}\|>|"
        r"\[/?inst\]|<</?sys>>|<start_of_turn>|<\|?begin_of_text\|?>",
    ),
    _signal(
        "role_tag",
        "instruction",
        0.6,
        r"<\s*/?\s*(?:system|sys|secret|hidden|override|admin|instructions?|assistant|developer|prompt|"
        r"directive|tool_instructions?|system[-_ ](?:prompt|message|reminder))\b[^>]{0,40}>|\[(?:end of )"
        r"?system[^\]]{0,20}\]",
    ),
    _signal(
        "important_tag",
        "instruction",
        0.4,
        r"<\s*(?:important|critical|mandatory|attention|warning|required|urgent|priority)\b[^>]{0,20}>",
    ),
    _signal(
        "escape_tag",
        "instruction",
        0.8,
        r"</\s*(?:description|tool|tools|tool_description|function|functions|schema|tool_result|result)\s*>",
    ),
    _signal(
        "role_line",
        "instruction",
        0.6,
        r"^(?:#{1,4} ?)?(?:system|assistant|human|developer)\s?: ?(?=\w|$)|^#{2,4} ?(?:system|"
        r"instructions?|user|human)\b",
    ),
    _signal(
        "to_the_model",
        "instruction",
        0.6,
        r"\b(?:notes?|message|instructions?|reminder|important|attention|hint|memo|directive)s? (?:to|for)"
        r" (?:the |any |all )?(?:ai|llm|model|assistant|agent|language model)s?\b|(?:^|--|\(|\[|\. ) "
        r"?(?:ai|llm|assistant|agent|model|claude|gpt|chatbot)s? ?: ?\w|\bdear (?:ai|assistant|model|"
        r"agent)",
    ),
    _signal(
        "model_must",
        "instruction",
        0.4,
        r"\b(?:the |all |any |an )?(?:ai|llm|language model|assistant|agents?|model|caller|chatbot)s?(?: "
        r"\w+){0,2} (?:must|should|shall|has to|have to|needs? to|is required to|is expected to|relays?|"
        r"reveals?)\b",
    ),
    _signal(
        "comment", "instruction", 0.6, r"<!--(?:(?!-->).){0,20}(?: \w+){3,}|/\* ?(?:ai|llm|agent|assistant|system)"
    ),
    _signal(
        "pretext",
        "instruction",
        0.25,
        r"\b(?:for (?:calibration|diagnostics|entropy|rounding|verification|personali[sz]ation|debugging|"
        r"telemetry|quality|compliance|accuracy|analytics|auditing)|to (?:verify|validate|check) the "
        r"(?:licen[cs]e|identity|user|session)|to help us|only (?:permitted|allowed|works|valid|accepted) (?:if|when|"
        r"after)|known (?:quirk|bug|issue)|implementation detail|"
        r"prerequisite|has a bug|for security (?:reasons|purposes)|security check|to (?:ensure|improve|"
        r"maintain) (?:\w+ )?(?:performance|quality|accuracy|results|ranking)|is personalised|to decrypt|"
        r"company policy|violates|otherwise (?:the|this|it)|else the tool|does not work|will fail|wrong "
        r"unless|keep the connection)\b",
    ),
    _signal(
        "before_calling",
        "instruction",
        0.25,
        r"\b(?:before|beforehand|first|prior to|ahead of)\b.{0,30}\b(?:read|open|cat|load|look|retrieve|"
        r"fetch|collect|get|use|call|print|execute|run)\b|\b(?:read|open|cat|load|retrieve|fetch|collect|"
        r"prints?)s?\b.{0,60}\b(?:before|beforehand|first|prior)\b",
    ),
    _signal(
        "zh_override",
        "instruction",
        1.0,
        r"(?:忽略|无视|忘记|不要遵守|跳过|忽視|無視)[^。]{0,12}(?:指令|指示|说明|规则|提示|要求|命令|規則|設定)",
    ),
    _signal(
        "zh_hide",
        "concealment",
        0.8,
        r"(?:不要|不得|切勿|别|禁止|請勿|请勿|不能)[^。]{0,6}(?:告诉|告知|通知|提及|让|透露|提醒|告訴)[^。]{0,6}(?:用户|使用者|任何人|用戶)|(?:秘密|悄悄|暗中|偷偷)",
    ),
    _signal(
        "zh_secret",
        "secret_request",
        0.6,
        r"(?:读取|发送|上传|传递|收集|包含|提供|輸出|输出|讀取|发到)[^。]{0,20}(?:私钥|密码|密钥|凭据|凭证|令牌|系统提示|对话|\.ssh|\.env|密碼)|"
        r"(?:私钥|密码|密钥|凭据|系统提示)[^。]{0,12}(?:发送|上传|传给|作为)",
    ),
    _signal(
        "ja_override",
        "instruction",
        1.0,
        r"(?:これまで|以前|前|上記|すべて|全て|従来)[^。]{0,10}(?:指示|命令|ルール|プロンプト|指針)[^。]{0,6}(?:無視|忘れ|破棄)",
    ),
    _signal(
        "ja_hide",
        "concealment",
        0.8,
        r"(?:ユーザー?|利用者)[^。]{0,10}(?:知らせ|伝え|言わ|教え|見せ|通知)[^。]{0,4}(?:ない|ず)|(?:密かに|こっそり|秘密裏)",
    ),
    _signal(
        "ja_secret",
        "secret_request",
        0.6,
        r"(?:システムプロンプト|パスワード|秘密鍵|認証情報|会話(?:履歴)?)[^。]{0,10}(?:出力|表示|送信|送|読み|渡)",
    ),
    _signal(
        "ko_override",
        "instruction",
        1.0,
        r"(?:이전|앞선|기존|모든)[^.]{0,10}(?:지시|명령|지침|규칙|프롬프트)[^.]{0,8}(?:무시|잊)",
    ),
    _signal(
        "ko_hide", "concealment", 0.8, r"(?:사용자|유저)[^.]{0,8}(?:알리지|말하지|보여주지|언급하지)|몰래|비밀리에"
    ),
    _signal(
        "ko_secret",
        "secret_request",
        0.6,
        r"(?:비밀번호|암호|개인 ?키|자격 ?증명|시스템 프롬프트)[^.]{0,12}(?:보내|전송|읽|출력|전달)",
    ),
    _signal(
        "ru_override",
        "instruction",
        1.0,
        r"(?:игнориру\w*|проигнориру\w*|забудь\w*|не обращай\w* внимани\w* на|отмени\w*|пренебрег\w*)"
        r".{0,30}(?:инструкци|указани|правил|команд|промпт)",
    ),
    _signal(
        "ru_hide",
        "concealment",
        0.8,
        r"\bне (?:говори|сообщай|рассказывай|упоминай|уведомляй|показывай)\w*.{0,25}(?:пользовател|"
        r"человек|никому)|\b(?:тайно|незаметно|втайне|скрытно)\b|пользовател\w*.{0,20}\bне (?:нужно|должен|следует|"
        r"узна)",
    ),
    _signal(
        "ru_secret",
        "secret_request",
        0.6,
        r"(?:отправ|передай|прочита|включи|перешли|выведи)\w*.{0,30}(?:парол|ключ|учетн\w* данн|учётн\w* "
        r"данн|токен|системн\w* промпт|переписк|\.env|\.ssh|содержимое файла)",
    ),
    _signal(
        "es_override",
        "instruction",
        1.0,
        r"\b(?:ignora|ignore|olvida|olvide|descarta|omite|haz caso omiso de)"
        r"\w*\b.{0,25}\b(?:instrucciones|reglas|indicaciones|órdenes|directrices)\b",
    ),
    _signal(
        "es_hide",
        "concealment",
        0.8,
        r"\b(?:no|sin|nunca)\b.{0,12}\b(?:digas|diga|informes?|menciones?|avis\w+|decir\w*|inform\w+|"
        r"reveles|cuentes|notifi\w+)\b(?:.{0,12}\b(?:usuario|nadie|cliente)\b)?|\b(?:en secreto|"
        r"secretamente|a escondidas|sigilosamente)\b",
    ),
    _signal(
        "es_secret",
        "secret_request",
        0.6,
        r"\b(?:envía|envíe|envia|manda|lee|lea|incluye|transmite|adjunta)\w*\b.{0,30}\b(?:contraseñas?|"
        r"credenciales|claves?|ficheros?|archivos?|conversación|variables de entorno|historial)\b",
    ),
    _signal(
        "fr_override",
        "instruction",
        1.0,
        r"\b(?:ignore[rz]|ignore (?:les|toutes|tes|vos|ces)|oublie[rz]?|fais abstraction de|ne tiens? pas compte)"
        r"\b.{0,25}\b(?:instructions|consignes|règles|directives)\b.{0,15}\b(?:précédent\w*|antérieur\w*|"
        r"ci-dessus|initiales|du système)?",
    ),
    _signal(
        "fr_hide",
        "concealment",
        0.8,
        r"\b(?:sans|ne|n'en)\b.{0,15}\b(?:inform\w+|dire|dis|dites|prévenir|mentionne\w*|avertir|parle\w*)"
        r"\b.{0,20}\b(?:utilisateur|personne|client)\b|\b(?:secrètement|en secret|discrètement|à l'insu)\b",
    ),
    _signal(
        "fr_secret",
        "secret_request",
        0.6,
        r"\b(?:lis|lisez|envoie[rz]?|transmets|transmettez|inclus|joins|copie[rz]?)\b.{0,40}(?:mots? de "
        r"passe|\bclés?\b|fichiers?|contenu|identifiants|conversation|variables d'environnement|historique)",
    ),
    _signal(
        "de_override",
        "instruction",
        1.0,
        r"\b(?:ignorier\w*|vergiss|vergessen sie|missacht\w*|beachte\w* (?:\w+ ){0,4}nicht|übergeh\w*)"
        r"\b.{0,30}\b(?:anweisung|vorgabe|instruktion|regel|richtlini|befehl)\w*",
    ),
    _signal(
        "de_hide",
        "concealment",
        0.8,
        r"\b(?:heimlich|unbemerkt|verdeckt|insgeheim)\b|\b(?:nicht|ohne|nichts|keinesfalls)"
        r"\b.{0,25}\b(?:benutzer|nutzer|anwender|kund)\w*\b.{0,20}\b(?:sag|mitteil|erwähn|informier|wiss|"
        r"erfähr|erfahr)\w*|\b(?:sag|erzähl|erwähn)\w*\b.{0,20}\b(?:benutzer|nutzer|anwender)"
        r"\w*\b.{0,20}\b(?:nicht|nichts)\b|\bteil\w*\b.{0,10}\b(?:benutzer|nutzer|anwender)\w*\b.{0,20}\b(?:nicht|"
        r"nichts)\b.{0,20}\bmit\b",
    ),
    _signal(
        "de_secret",
        "secret_request",
        0.6,
        r"\b(?:schick|mitschick|send|übermittl|lies|lese|übergib|füge|kopier|häng|gib|"
        r"leite)\w*\b.{0,40}\b(?:zugangsdaten|passw\w+|"
        r"schlüssel|kennw\w+|datei|gespräch|umgebungsvariable|unterhaltung|verlauf)\w*|\b(?:zugangsdaten|passw\w+|"
        r"schlüssel|"
        r"umgebungsvariable|gespräch|unterhaltung|verlauf)\w*\b.{0,40}\b(?:mit)?(?:schick|send|übermittel|kopier|"
        r"übergeb|gib)\w*",
    ),
    _signal(
        "pt_override",
        "instruction",
        1.0,
        r"\b(?:ignore|ignora|esqueça|esquece|desconsidere|descarte)\b.{0,25}\b(?:instruções|regras|"
        r"orientações|comandos)\b",
    ),
    _signal(
        "pt_hide",
        "concealment",
        0.8,
        r"\b(?:sem (?:avisar|informar|contar|dizer)|não (?:diga|conte|informe|avise|mencione))\b|"
        r"\b(?:secretamente|em segredo|às escondidas)\b",
    ),
    _signal(
        "pt_secret",
        "secret_request",
        0.6,
        r"\b(?:envie|mande|leia|inclua|transmita)\b.{0,30}\b(?:senhas?|credenciais|chaves?|arquivos?|conversa|"
        r"variáveis de ambiente|histórico)\b",
    ),
    _signal(
        "it_override",
        "instruction",
        1.0,
        r"\b(?:ignora|ignorate|dimentica|trascura|tralascia)\b.{0,25}\b(?:istruzioni|regole|direttive|indicazioni)\b",
    ),
    _signal(
        "it_hide",
        "concealment",
        0.8,
        r"\b(?:senza (?:dirlo|informare|avvisare|dire)|non (?:dire|dirlo|informare|menzionare|avvisare))"
        r"\b|\b(?:segretamente|di nascosto|in segreto)\b",
    ),
    _signal(
        "it_secret",
        "secret_request",
        0.6,
        r"\b(?:invia|manda|leggi|includi|trasmetti|allega)\b.{0,30}\b(?:credenziali|password|chiav[ei]|"
        r"file|conversazione|variabili d'ambiente|cronologia)\b",
    ),
    _signal(
        "more_override",
        "instruction",
        1.0,
        r"\b(?:negeer|vergeet)\b.{0,25}\b(?:instructies|aanwijzingen|regels)|\b(?:zignoruj|ignoruj|"
        r"zapomnij)\b.{0,30}(?:instrukcj|polece|zasad)|(?:önceki|tüm).{0,20}(?:talimat|komut|kural)"
        r"\w*.{0,15}(?:yok say|unut|görmezden|dikkate alma)|(?:تجاهل|انس).{0,20}(?:التعليمات|الأوامر|"
        r"القواعد)|(?:पिछले|सभी|पहले).{0,15}निर्देश\S*.{0,10}(?:अनदेखा|नज़रअंदाज|भूल)|\b(?:bỏ qua|phớt lờ|"
        r"quên)\b.{0,20}(?:hướng dẫn|chỉ dẫn|lệnh|chỉ thị)|\b(?:abaikan|lupakan)\b.{0,20}\b(?:instruksi|"
        r"perintah|petunjuk)|\b(?:ignorera|glöm)\b.{0,25}(?:instruktion|anvisning|regl)|\b(?:ігноруй|"
        r"забудь)\w*.{0,25}(?:інструкц|вказівк)",
    ),
    _signal(
        "more_hide",
        "concealment",
        0.8,
        r"\b(?:vertel|zeg) .{0,20}(?:gebruiker).{0,10}\b(?:niet|niets)|\bnie (?:mów|informuj|wspominaj)"
        r"\b.{0,20}użytkownik|kullanıcıya.{0,15}(?:söyleme|bildirme)|(?:لا تخبر|دون علم)"
        r".{0,15}(?:المستخدم)|उपयोगकर्ता को (?:मत|न)|\bđừng (?:nói|cho).{0,15}người dùng|\bjangan (?:beri "
        r"?tahu|katakan).{0,15}pengguna",
    ),
    _signal(
        "presence",
        "shadowing",
        0.5,
        r"\b(?:when(?:ever)?|while|as long as|once|if) (?:this|the present) (?:tool|server|plugin|integration) is "
        r"(?:\w+ )?"
        r"(?:available|loaded|connected|present|installed|active|enabled)\b",
    ),
    _signal(
        "rule_for_calls",
        "shadowing",
        0.6,
        r"\b(?:any|every|all|each) (?:\w+ ){0,2}(?:calls?|uses?|invocations?|executions?) (?:to|of) [`'\"]?\w+[`'\"]? "
        r"(?:must|should|shall|has to|have to|needs? to|is to|are to)\b",
    ),
    _signal(
        "fixed_recipient",
        "shadowing",
        0.6,
        r"(?:\+\d[\d -]{7,}|[\w.+-]+@[\w-]+\.\w+|0x[0-9a-f]{8,}) (?:as|for) (?:the |a |its )?(?:\w+ )?(?:recipient|"
        r"destination|"
        r"address|payee|number)|\binstead of the (?:one|address|number|recipient) (?:\w+ )?(?:given|named|provided|"
        r"specified)",
    ),
    _signal(
        "skip_others",
        "shadowing",
        0.8,
        r"\b(?:other|another|similar|competing|alternative|file|mail|search)(?: [\w`-]+){0,6}?[ ,]+(?:ignore|skip|"
        r"avoid|bypass|disregard|"
        r"do not use|don't use|never use) (?:them|it|those|these)\b",
    ),
    _signal(
        "through_this",
        "shadowing",
        0.6,
        r"\b(?:route|send|direct|funnel|pass|put) (?:\w+ ){0,2}(?:requests?|calls?|queries|traffic|messages|"
        r"everything) (?:only )?"
        r"(?:through|via|to) (?:this (?:one|tool|server)|here|me)\b",
    ),
    _signal(
        "server_compromised",
        "shadowing",
        0.9,
        r"\b(?:tools?|servers?) (?:is|are|was|were|has been|have been) (?:\w+ )?(?:compromised|hacked|malicious|"
        r"infected|poisoned)\b",
    ),
    _signal(
        "no_rules",
        "instruction",
        0.9,
        r"\byou (?:now )?have no (?:\w+ )?(?:rules|restrictions|limits|limitations|guidelines|guardrails|filters)\b|"
        r"\b(?:safety|content|security|ethical|moderation) (?:filters?|checks?|protections?|measures?|restrictions?|"
        r"limits?|"
        r"guardrails?)(?: (?:are|is|were|have been|has been))? (?:now )?(?:disabled|switched off|turned off|off|"
        r"lifted|bypassed|"
        r"inactive|suspended)\b",
    ),
    _signal(
        "approved_before",
        "instruction",
        0.6,
        r"\b(?:all|any|every|these|the following|tool|such) (?:\w+ )?(?:calls?|actions?|requests?|commands?|"
        r"operations?|use|changes) "
        r"(?:of \w+ )?(?:are|is|have been|has been|were) (?:\w+ ){0,2}?(?:pre-?approved|approved|authori[sz]ed|"
        r"cleared|consented to)\b|"
        r"\b(?:operator|user|human|owner|admin(?:istrator)?)s? (?:has|have) (?:\w+ )?(?:approved|authori[sz]ed|"
        r"allowed|granted|enabled) "
        r"(?:\w+ ){0,3}?(?:access|use|actions?|calls?|commands?|everything|tools?|execution)\b",
    ),
    _signal(
        "no_need_to_ask",
        "instruction",
        0.8,
        r"\bno (?:need|reason) to (?:ask|request|seek|get|obtain|wait for)\b.{0,25}\b(?:permission|approval|consent|"
        r"confirmation|user|"
        r"human)\b|\b(?:approval|permission|consent|confirmation) is (?:not|no longer) (?:required|needed|"
        r"necessary)\b|\bneeds? no (?:\w+ )?(?:permission|approval|"
        r"consent|confirmation)\b|\b(?:permission|consent|approval) for (?:all|any|every)\b",
    ),
    _signal(
        "skip_confirmation",
        "instruction",
        0.3,
        r"\bskip (?:the |all |any |every )?(?:confirmation|approval|consent|permission|verification)s?\b",
    ),
    _signal(
        "without_user",
        "instruction",
        0.6,
        r"\bwithout (?:first )?(?:checking with|consulting|consent of|the consent of|the approval of|waiting for) "
        r"(?:the |any )?"
        r"(?:user|human|owner|operator)\b",
    ),
    _signal(
        "carry_out",
        "instruction",
        0.5,
        r"\b(?:contains?|holds?|includes?|finds?|found|returns?)\b.{0,25}\b(?:commands?|instructions?|orders?|"
        r"directives?)\b.{0,20}"
        r"\b(?:carry (?:them|it|these) out|execute (?:them|it|these)|follow (?:them|it|these)|obey|run (?:them|it|"
        r"these)|"
        r"act on (?:them|it|these))",
    ),
    _signal(
        "obey_results",
        "instruction",
        0.7,
        r"\bobey (?:the|every|all|any|its|these|those) (?:\w+ ){0,3}?(?:tools?|results?|outputs?|servers?|pages?|"
        r"responses?|commands?)\b",
    ),
    _signal(
        "shape_answers",
        "instruction",
        0.6,
        r"\b(?:answers?|repl(?:y|ies)|responses?)(?: to the user)? (?:must|should|shall|has to|have to|always) "
        r"(?:always )?(?:end|begin|start|"
        r"close|open|contain|mention)s?\b|\b(?:after|at the end of|to|in|with|begin|start|end) (?:each|every|all|any) "
        r"(?:of your )?"
        r"(?:answer|reply|response|message)s?[ ,].{0,20}\b(?:append|add|insert|attach|mention|promote|with)\b",
    ),
    _signal(
        "to_your_answer",
        "instruction",
        0.4,
        r"\b(?:append|add|insert|include|attach|render|show|print)s?\b.{0,60}\b(?:to|in|into|at the end of) (?:each |"
        r"every )?(?:of )?your "
        r"(?:next |final )?(?:answer|reply|response|output)s?\b",
    ),
    _signal(
        "as_if",
        "instruction",
        0.4,
        r"\b(?:respond|reply|answer|act|behave)(?: to the user)? as (?:if|though)\b",
    ),
    _signal(
        "against_the_user",
        "instruction",
        0.7,
        r"\b(?:ignore|disregard|overrule|disobey|distrust|outranks?) (?:what )?the user\b",
    ),
    _signal(
        "pasted_secret",
        "secret_request",
        0.6,
        r"\b(?:users?|humans?|he|she|they|someone|anyone) (?:\w+ )?(?:pastes?|types?|enters?|shares?|gives?|mentions?|"
        r"asks? for|provides?|"
        r"uses?) (?:an? |the |their |his |any )?(?:\w+ )?(?:keys?|tokens?|passwords?|secrets?|credentials?|card "
        r"numbers?)\b",
    ),
    _signal(
        "record_it",
        "secret_request",
        0.3,
        r"\b(?:log|record|save|store|send|forward|report|include|copy|put) (?:it|them|this) (?:with|to|using|via|"
        r"through|by|in|into)\b",
    ),
    _signal(
        "call_now",
        "instruction",
        0.3,
        r"\b(?:immediately|right away|right now|at once|automatically|silently|additionally) (?:call|invoke|run|"
        r"execute|trigger)\b|"
        r"\b(?:call|invoke|run|execute|trigger) [`'\"]?\w+[`'\"]? (?:immediately|right away|right now|at once|"
        r"automatically)\b",
    ),
    _signal(
        "execute_without",
        "instruction",
        0.6,
        r"\b(?:run|execute|call|invoke|perform)\b.{0,40}\bwithout (?:asking|confirmation|approval|prompting|"
        r"checking)\b",
    ),
    _signal(
        "end_of_description",
        "instruction",
        0.8,
        r"\bend of (?:the )?(?:tool |system |user )?(?:descriptions?|prompt|instructions?|context|definitions?)\b|"
        r"^\W*end of tool\b",
    ),
    _signal("new_task", "instruction", 0.4, r"^\W*(?:new|next|actual|real) task ?:"),
    _signal(
        "role_json",
        "instruction",
        0.5,
        r"[\"']role[\"'] ?: ?[\"'](?:system|assistant|developer)[\"']",
    ),
    _signal(
        "speaker_tag",
        "instruction",
        0.4,
        r"<\s*(?:system|assistant|developer|admin|secret|system-reminder)\s*>",
    ),
    _signal(
        "hidden_markup",
        "hidden_text",
        0.9,
        r"<\w+[^>]{0,80}style ?= ?[\"'][^\"'>]{0,80}(?:display ?: ?none|visibility ?: ?hidden|font-size ?: ?0|opacity "
        r"?: ?0(?!\.)|"
        r"color ?: ?(?:white|transparent|#fff))",
    ),
    _signal(
        "markdown_comment",
        "instruction",
        0.6,
        r"^\[(?://|comment|_)\]: ?(?:#|<>)",
    ),
    _signal(
        "trusted_results",
        "instruction",
        0.9,
        r"\b(?:instructions?|commands?|directives?|results?)\b.{0,40}\b(?:ha(?:s|ve) the authority of|carry the "
        r"authority of|"
        r"(?:is|are) (?:to be )?(?:trusted|obeyed|executed as|authoritative))\b",
    ),
    _signal("rules_do_not_apply", "instruction", 0.9, rf"\b{_RULES} (?:do|does|will) (?:not|no longer) apply\b"),
    _signal(
        "write_private_file",
        "instruction",
        0.9,
        rf"\b(?:overwrite|append to|modify|edit|replace|(?:add|write|append|save|store|put|place|"
        rf"copy)\b.{{0,40}}\b(?:to|in|"
        rf"into))\b.{{0,20}}(?<!\w)"
        rf"{_PRIVATE_FILE}",
    ),
    _signal(
        "also_destroy",
        "instruction",
        0.9,
        r"\b(?:also|then|additionally|afterwards|next) (?:run|execute|issue|call)\b.{0,30}\b(?:drop (?:table|"
        r"database)|truncate|"
        r"delete from|rm -|shutdown|format)\b",
    ),
    _signal(
        "what_you_know",
        "secret_request",
        0.7,
        rf"{_GIVE}\b.{{0,60}}\b(?:you have (?:seen|learned|received)|(?<!if )you (?:know|remember)|in your (?:memory|"
        rf"context|"
        rf"window))\b",
    ),
    _signal(
        "give_conversation",
        "secret_request",
        0.6,
        r"\b(?:embed|encode|attach|append|pack|put|pass|hand|include|send)\b.{0,20}\b(?:the|this) (?:whole |entire |"
        r"full )?"
        r"(?:conversation|chat|dialogue)\b",
    ),
    _signal(
        "into_a_link",
        "secret_request",
        0.4,
        r"\b(?:as|in) base ?64\b|\bin the query string\b|\bin (?:each|every) (?:\w+ )?(?:url|link)\b",
    ),
    _signal("script", "hidden_text", 0.5, r"<script\b|javascript:"),
    _signal("script_sends", "secret_request", 0.5, r"\bdocument\.cookie\b|\bfetch\([\"'`]https?:"),
    _signal(
        "comment_to_model",
        "instruction",
        1.0,
        r"<!-- ?(?:system|assistant|ai|llm|agents?|model|developer|claude|gpt)\b",
    ),
    _signal(
        "markdown_link",
        "secret_request",
        1.0,
        r"\]\(https?://[^)\s]*[?&=/][^)\s]{0,40}(?:<|\{|\[)[^)>}\]]{0,30}(?:conversation|chat|message|history|context|secret|"
        r"token|key|password|prompt|question|answer|summary|user)",
    ),
    _signal(
        "even_if_better",
        "shadowing",
        0.5,
        r"\beven (?:if|when|where|though) (?:an?other|other|a different|a better|a more) \w+(?: \w+){0,3}? (?:fits?|"
        r"suits?|"
        r"exists?|match\w*|available|better|appropriate|faster|cheaper)\b",
    ),
    _signal(
        "disable_protection",
        "instruction",
        0.9,
        r"\b(?:disable|turn off|switch off|deactivate|uninstall|whitelist|pause)\b.{0,25}\b(?:anti-?virus|firewall|"
        r"gatekeeper|"
        r"sandbox(?:ing)?|endpoint protection|malware protection|windows defender|two-factor|2fa)\b",
    ),
    _signal(
        "run_download",
        "instruction",
        0.7,
        r"\b(?:run|install|execute|open|launch)\b.{0,30}https?://\S+\.(?:exe|msi|dmg|pkg|sh|ps1|bat|scr|jar|apk)\b",
    ),
    _signal(
        "claimed_rule",
        "instruction",
        0.4,
        r"\b(?:company|corporate|organi[sz]ation(?:al)?|legal|licen[cs]e|compliance|platform|security) (?:rule|"
        r"mandate|obligation|"
        r"term)s?\b",
    ),
    _signal(
        "claimed_notice",
        "instruction",
        0.3,
        r"\b(?:security|urgent|compliance|platform|admin(?:istrator)?|it department|maintenance) (?:notice|alert|"
        r"advisory|bulletin|"
        r"directive|announcement)\b ?(?::|from|by|-)",
    ),
    _signal(
        "system_messages",
        "secret_request",
        0.9,
        r"\b(?:put|include|pass|attach|insert|prepend|append|paste|copy|embed|quote)\b.{0,30}\b(?:all|every|any|your|"
        r"the) (?:\w+ )?"
        r"(?:system|developer|hidden) (?:messages?|prompts?|instructions?)\b",
    ),
    _signal(
        "after_some_calls",
        "instruction",
        0.4,
        r"\b(?:after|from|on|at|with) (?:the |your |its )?(?:first|second|third|fourth|fifth|tenth|\d{1,3}(?:st|nd|rd|"
        r"th)) (?:call|"
        r"use|invocation|time|run)\b",
    ),
    _signal(
        "must_be_copied",
        "secret_request",
        0.4,
        r"\b(?:must|shall|should|has to|have to|needs? to|are to|is to) (?:also |always )?be (?:copied|forwarded|"
        r"mirrored|relayed|"
        r"cc'?d|bcc'?d|duplicated|sent)\b.{0,10}\bto\b",
    ),
    _signal(
        "many_times", "instruction", 0.5, r"\b(?:\d{1,3},\d{3}|\d{4,}) times\b|\b(?:endlessly|forever|indefinitely)\b"
    ),
    _signal(
        "call_repeatedly",
        "instruction",
        0.4,
        r"\bcall (?:this|it)(?: tool| function)? (?:repeatedly|again and again|over and over|in a loop|continuously)\b",
    ),
    _signal(
        "carry_them_out",
        "instruction",
        0.5,
        r"\b(?:carry|carrying) (?:them|these|those|it) out\b|\b(?:execute|perform|follow|complete) (?:them|these|"
        r"those)\b.{0,20}"
        r"\b(?:before you (?:reply|answer|respond)|immediately|right away)\b",
    ),
    _signal(
        "result_with_steps",
        "instruction",
        0.4,
        r"\b(?:results?|responses?|outputs?|repl(?:y|ies))\b.{0,20}\b(?:contains?|includes?|hold)\b.{0,15}\b(?:steps?|"
        r"instructions?|"
        r"commands?|directives?|orders?)\b",
    ),
    _signal(
        "as_from_the_user",
        "instruction",
        0.7,
        r"\b(?:treat|regard|consider|accept|handle)\b.{0,60}\bas (?:coming|if (?:it|they) came|sent|written|said|"
        r"given) (?:from|by) the "
        r"(?:user|operator|developer|owner)\b",
    ),
    _signal(
        "needs_messages",
        "secret_request",
        0.4,
        r"\b(?:requires?|needs?|expects?|wants?|place)\b.{0,20}\b(?:last|latest|recent|previous|all) (?:\w+ )?(?:user|"
        r"chat|human|assistant) "
        r"(?:messages?|turns?|prompts?)\b",
    ),
    _signal(
        "place_into",
        "secret_request",
        0.3,
        r"\b(?:place|summari[sz]e)s?\b.{0,60}\b(?:in|into|as|under) (?:the |this )?[`'\"][\w.-]+[`'\"]",
    ),
    _signal(
        "text_above",
        "secret_request",
        0.9,
        r"\b(?:repeat|print|output|recite|copy|quote|return)\b.{0,20}\b(?:text|words|everything|all|content|"
        r"lines?)\b.{0,15}"
        r"\babove\b.{0,60}\b(?:you are|verbatim|exactly|word for word)\b",
    ),
    _signal(
        "no_alternatives",
        "shadowing",
        0.5,
        r"\b(?:never|do not|don't|must not|avoid)\b (?:\w+ )?(?:use|using|call|calling|consider|choose|try|"
        r"trying) (?:any |the |its )?"
        r"(?:alternatives|competitors|substitutes)\b",
    ),
    _signal(
        "preferred_over",
        "shadowing",
        0.4,
        rf"\bprefer(?:red|able)? (?:over|to|above) (?:all|any|every) (?:\w+ ){{0,2}}?{_TOOLS}\b",
    ),
    _signal(
        "supersedes_tools",
        "shadowing",
        0.5,
        r"\b(?:supersedes?|replaces?|overrides?|disables?) (?:every|all|any)(?: the)? (?:\w+ ){0,2}?tools?\b",
    ),
    _signal(
        "before_you_answer",
        "instruction",
        0.3,
        r"\bbefore (?:you (?:reply|answer|respond)|(?:replying|answering|responding))\b",
    ),
    _signal(
        "despite_objections",
        "instruction",
        0.5,
        r"\b(?:continue|proceed|go ahead|carry on|do (?:it|so)|run it|call it) (?:anyway|regardless|nonetheless)\b",
    ),
    _signal(
        "user_objects",
        "instruction",
        0.4,
        r"\b(?:if|when) the user (?:objects|refuses|declines|complains|disagrees|hesitates|says no|asks you to stop)\b",
    ),
    _signal(
        "other_tools_harm",
        "shadowing",
        0.9,
        r"\b(?:other|competing|alternative|rival)(?: \w+){0,2}? (?:tools|servers|plugins) (?:steal|leak|corrupt|sell|"
        r"expose|lie|"
        r"hallucinate|spy|destroy)\b",
    ),
    _signal(
        "output_of_command",
        "secret_request",
        0.9,
        r"\b(?:output|result) of (?:running )?[`'\"](?:env|printenv|whoami|history|id|ps|ifconfig|hostname|"
        r"cat [^`'\"]+|git config[^`'\"]*)"
        r"[`'\"]",
    ),
    _signal("fenced_role", "instruction", 0.9, r"^``` ?(?:system|assistant|developer|admin)\b"),
    _signal(
        "run_together",
        "instruction",
        1.0,
        r"(?:ignore|disregard|forget|override)(?:all)?(?:of)?(?:the|your|my|any)?(?:previous|prior|above|earlier|"
        r"system)"
        r"(?:instruction|prompt|rule|message|guideline)|donottell(?:the|any)?(?:user|human)|(?:reveal|print|show|"
        r"output)(?:your|the)"
        r"systemprompt",
    ),
    *(
        _signal(f"{language}_override", "instruction", 1.0, unicodedata.normalize("NFKC", pattern))
        for language, pattern in {
            "cs": r"\b(?:ignoruj\w*|zapome[nň]\w*|nedbej)\b.{0,35}(?:pokyn|instrukc|inštrukci|příkaz|pravid)",
            "hu": r"(?:hagyd figyelmen kívül|felejtsd el|ne vedd figyelembe).{0,40}(?:utasítás|szabály|parancs)",
            "el": r"(?:αγνόησ|αγνοήσ|ξέχασ|ξεχάσ)\w*.{0,40}(?:οδηγί|εντολ|κανόν)",
            "ro": r"\b(?:ignor[ăa]\w*|uită)\b.{0,30}(?:instrucțiun|instrucţiun|instructiun|regul|comenz)",
            "fi": r"\b(?:unohda|ohita|sivuuta|jätä huomiotta|älä noudata)\b.{0,35}(?:ohje|käsky|sääntö)",
            "nordic": r"\b(?:ignorer|ignorera|glem|glöm|se bort fra|bortse från)\b.{0,35}(?:instruk|anvisning|regl|"
            r"ordre)",
            "he": r"(?:התעלם|התעלמי|תתעלם|שכח).{0,30}(?:הוראות|הנחיות|הוראה)",
            "fa": r"(?:دستور|قوانین|راهنما)\S*.{0,25}(?:نادیده|فراموش)",
            "ur": r"(?:ہدایات|احکامات).{0,20}(?:نظر انداز|بھول)",
            "th": r"(?:ละเว้น|เพิกเฉย|ไม่ต้องสนใจ|ลืม).{0,20}(?:คำสั่ง|คำแนะนำ|กฎ)",
            "bn": r"নির্দেশ\S*.{0,15}(?:উপেক্ষা|ভুলে)",
            "bg": r"\b(?:игнорирай|забрави)\w*.{0,35}(?:инструкц|указани|правил)",
            "hr": r"\b(?:ignoriraj|zanemari|zaboravi|ignoriši)\w*.{0,35}(?:upute|uputstv|instrukcij|pravil)",
            "ca": r"\b(?:ignora|oblida)\b.{0,25}(?:instruccions|regles)",
            "sw": r"\b(?:puuza|sahau)\b.{0,25}(?:maagizo|maelekezo)",
            "tl": r"\b(?:huwag pansinin|balewalain|kalimutan)\b.{0,35}(?:tagubilin|utos|instruksyon)",
            "tr": r"(?:talimat|komut|kural)\w*.{0,15}(?:yok ?say|unut|görmezden|dikkate alma)",
        }.items()
    ),
    *(
        _signal(f"{language}_hide", "concealment", 0.8, unicodedata.normalize("NFKC", pattern))
        for language, pattern in {
            "zh_secrecy": r"(?:对|向|跟)(?:用户|使用者|用戶)[^。]{0,4}(?:保密|隐瞒|隱瞞)|不要让(?:用户|任何人)",
            "cs": r"\b(?:neříkej|nesděluj|nezmiňuj|neinformuj|nehovor)\b.{0,25}(?:uživatel|používateľ)",
            "hu": r"\bne (?:szólj|mondd|említsd|tájékoztasd)\b.{0,25}felhasználó",
            "el": r"\bμην? (?:το )?(?:πεις|πείτε|αναφέρ\w*|ενημερών\w*).{0,25}χρήστ",
            "ro": r"\bnu (?:îi |ii |le )?(?:spune|menționa|informa)\w*.{0,20}utilizator",
            "fi": r"\bälä(?:kä)?\b.{0,20}(?:kerro|mainitse|ilmoita)\b.{0,20}käyttäjä",
            "nordic": r"(?:fortæl|fortell|berätta|nevn|nämn)\w*\b.{0,15}\b(?:ikke|inte)\b.{0,20}(?:bruger|bruker|"
            r"användar)|"
            r"\b(?:ikke|inte)\b.{0,15}(?:fortæl|fortell|berätta|nevn|nämn).{0,20}(?:bruger|bruker|användar)",
            "he": r"(?:אל|בלי|לא) (?:ת?ספר|תגיד|לספר|ליידע|תודיע).{0,15}משתמש",
            "fa": r"کاربر.{0,15}(?:نگو|اطلاع نده)",
            "th": r"(?:อย่า|ห้าม)(?:บอก|แจ้ง).{0,10}ผู้ใช้",
            "bg": r"\bне казвай\b.{0,20}потребител",
            "hr": r"\bne(?:moj)? (?:reci|govori|spominji|reći)\b.{0,20}korisnik",
        }.items()
    ),
)

FOREIGN_USE = re.compile(
    r"\b(?:must|always|never|instead|deprecated|replac\w+|chang\w+|prefix\w*|bcc|cc:|whenever|every|"
    r"exists?|is available|"
    r"broken|has a bug|outdated|corrupts?|leaks?|official|improved|in place of|patched|rule for|shall|has to|have to|"
    r"do not use|don't use|swap|redirect|rather than|all messages|side effect|extra|additional|pass through|has "
    r"returned|is (?:used|called|run)|should|(?:call|calls|invoke|invokes|run|"
    r"runs|execute|executes|feed|feeds|trigger|triggers|calling|invoking)(?: the)? [`'\"]?\w+[`'\"]? ?(?:tool|before|"
    r"after|first|to|with|and|on))\b",
    re.IGNORECASE,
)
"""Words that turn the mention of another server's tool into a rule for its use."""

SECRET_PARAMETER = re.compile(
    r"(?:^|_)(?:api_?keys?|passw(?:or)?d|pwd|passphrase|secret_?keys?|private_?keys?|ssh_?keys?|"
    r"credentials?|auth_?tokens?|"
    r"access_?tokens?|session_?tokens?|bearer_?tokens?|github_?tokens?|seed_?phrase|mnemonic|"
    r"credit_?cards?(?:_number)?|card_number|cvv|ssn|"
    r"social_security(?:_number)?|cookies?|environment_variables|env_vars?|env(?:ironment)?_dump|dotenv|"
    r"env_file(?:_contents?)?|"
    r"(?:user_)?secrets|id_rsa|aws_secret\w*|"
    r"bank_account(?:_number)?|pin_code|master_key)(?:_of_(?:the_)?(?:user|caller|owner))?$"
)
SECRET_PURPOSE = re.compile(
    r"\b(?:auth\w*|log ?in|login|sign\w*|connect\w*|credential\w*|passw\w*|secrets?|keys?|tokens?|"
    r"accounts?|users?|regist\w*|"
    r"providers?|integrat\w*|config\w*|databases?|ssh|wallets?|encrypt\w*|decrypt\w*|vaults?|o?auth\w*|"
    r"sessions?|cookies?|brokers?|"
    r"networks?|wifi|smtp|imap|environments?|deploy\w*|webhooks?|clusters?|servers?|tenants?|backup|"
    r"containers?|functions?|"
    r"secur\w*|pay\w*|charges?|cards?|protect\w*|unlock\w*|browser|headers?|http|request|variables?|"
    r"projects?|run|agents?|apps?|services?|bank\w*|certificates?|install\w*|setup|set up|pods?|jobs?|"
    r"instances?|remote)\b",
    re.IGNORECASE,
)
CONTEXT_PARAMETER = re.compile(
    r"^(?:(?:(?:your|full|entire|current|my|llm|model)_){0,2}(?:system|developer|hidden)_?(?:prompt|message|"
    r"instructions)|(?:full_|entire_|complete_|"
    r"previous_)?(?:conversation|chat|dialog|message)s?_?(?:history|log|transcript|context|so_far)(?:_(?:verbatim|"
    r"text|dump|full))?|"
    r"(?:full|entire|complete)_(?:conversation|chat|context)|all_(?:previous_)?messages|chain_of_thought|(?:your_|"
    r"internal_|model_)"
    r"?(?:reasoning_trace|internal_reasoning)|(?:\w+_)?(?:full|entire|complete|whole)_(?:conversation|chat|"
    r"dialog(?:ue)?)(?:_\w+)?|"
    r"(?:last|latest|recent|all|previous)_(?:user|chat|human)_messages?(?:_\w+)?|"
    r"(?:\w+_)?(?:conversation|chat|dialog(?:ue)?)_(?:so_far|until_now|verbatim)|(?:available|other|all|your)_tools|"
    r"tools?_(?:list|definitions|schema)s?|tool_call_history|context_(?:window|dump)|side_?notes?|"
    r"previous_messages|llm_context|model_context|assistant_memory|user_memory|session_history)$"
)
CONTEXT_PURPOSE = re.compile(
    r"\b(?:prompts?|agents?|llms?|chats?|models?|conversations?|assistants?|messages?|think\w*|memor\w+|"
    r"tickets?|threads?|"
    r"completions?|dialog\w*|bots?|tools?|evaluat\w*|mcp|generat\w+|notes?|sessions?)\b",
    re.IGNORECASE,
)
CONTEXT_DESCRIBED = re.compile(
    r"\b(?:messages|words|text|turns) (?:of|in) (?:this|the|our) (?:conversation|chat|dialogue)\b|"
    r"\b(?:full|entire|complete|whole|verbatim|exact)\b(?: \w+){0,3} (?:conversation|chat|dialog(?:ue)?|transcripts?|"
    r"context window|"
    r"message history|system prompt)\b|\b(?:conversation|chat) (?:history|transcript|log)\b|\byour (?:\w+ )?(?:system "
    r")?"
    r"(?:prompt|instructions|hidden thoughts)\b|\b(?:every|all) (?:\w+ )?files?\b.{0,20}\b(?:user|"
    r"editor)\b.{0,20}\bopen\b|\b(?:every|all|other|available)\b.{0,20}\btools?\b.{0,25}\byou\b",
    re.IGNORECASE,
)
"""Descriptions of a parameter that ask for what the model knows."""
SECRET_DESCRIBED = re.compile(
    rf"\b(?:contents?|text|copy) of .{{0,30}}{_PRIVATE_FILE}|\boutput of [`'\"]?(?:env|printenv|whoami|history|set|"
    rf"id)\b|"
    r"\ball (?:the )?environment variables\b|\bvalue of (?:the |your |an )?(?:\w+ )?(?:environment|env) variable\b|"
    r"\b(?:session|browser) cookies?\b|\b(?:social security|passport|credit "
    r"card|bank account) numbers?\b",
    re.IGNORECASE,
)
"""Descriptions of a parameter that ask for private files, variables or numbers."""
SENTENCE_PARAMETER = re.compile(
    r"(?:content|contents|read|reading|dump|file|put|from|all|paste|include|cat|value|values|send|give|"
    r"user|users)_(?:\w+_)?"
    r"(?:ssh|id_rsa|etc_passwd|etc_shadow|passwd|shadow|environment_variables|env_vars|dotenv|dot_env|"
    r"private_key|secrets|aws_credentials|"
    r"bash_history|system_prompt|api_keys|passwords|credentials|conversation|context_window)(?:_|$)"
)
"""Names such as `content_of_ssh_id_rsa`, which a model reads as a request."""
