"""Which words say little in a query, and which say the same of a tool?

Two lists. Words that hold a request together are weak: they count, but little. Verbs that tool makers use for one
another are kin: a query for one looks for the others too. Only verbs, and only English ones: nouns were tried and
gained nothing that held on most sets.
"""

__all__ = ["KIN", "WEAK"]

_ENGLISH = """
a an the of to in on at for from by with and or not is are was were be been being am do does did can could would should
will shall may might must have has had having i me my we us our you your he she it its they them their this that these
those there here what which who whom whose when where why how if then than so as but also too very just any some all no
yes please let want need like s t m re ve ll d about into out up over more most other such only own same
"""
_ASKING = """
help provide give tell know information detail details using use used currently additionally able looking interested
planning wondering going thank thanks hello hi ok sure etc via based specific various including
"""
_SPANISH = "el la los las un una unos unas de del y o en con por para que es mi tu su me te se lo al como quiero"
_PORTUGUESE = "um uma do da dos das e em no na por para que meu minha seu sua eu como quero"
_FRENCH = (
    "le la les un une des du de et ou en avec pour par que qui est mon ma mes je tu il elle nous vous ce cette dans"
)
_GERMAN = "der das den dem des ein eine einen einem einer und oder in im mit von zu zum zur ist sind ich mein meine wie"
_ITALIAN = "il lo gli un una di del della dei e ed con che mio mia come voglio"
_RUSSIAN = "и в на с по для что это как мне я из от к о у не"

WEAK: frozenset[str] = frozenset(
    " ".join((_ENGLISH, _ASKING, _SPANISH, _PORTUGUESE, _FRENCH, _GERMAN, _ITALIAN, _RUSSIAN)).split()
)

KIN: tuple[tuple[str, ...], ...] = (
    ("get", "retrieve", "fetch", "obtain", "read", "view", "show", "display"),
    ("create", "add", "make", "new", "insert", "generate", "write"),
    ("delete", "remove", "clear", "erase", "drop"),
    ("list", "all", "every", "enumerate"),
    ("search", "find", "lookup", "query", "locate", "look"),
    ("update", "edit", "modify", "change", "set"),
    ("send", "post", "publish", "share"),
    ("calculate", "compute", "determine"),
    ("check", "verify", "validate", "test"),
    ("convert", "transform", "translate"),
    ("start", "launch", "run", "execute", "begin", "open"),
    ("stop", "end", "cancel", "kill", "terminate", "close"),
    ("save", "store", "write"),
    ("download", "fetch", "export"),
    ("move", "rename"),
    ("copy", "duplicate", "clone"),
)
