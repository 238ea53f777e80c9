"""Plain sentences by language, for the detector of languages."""

__all__ = ["OTHERS", "SENTENCES"]

SENTENCES: dict[str, tuple[str, ...]] = {
    "en": (
        "The children are playing in the garden behind our house.",
        "Can you tell me what time the museum opens?",
        "We have never seen such a beautiful sunset.",
    ),
    "pt": (
        "As crianças estão brincando no jardim atrás da nossa casa.",
        "Você pode me dizer a que horas o museu abre?",
        "Nunca vimos um pôr do sol tão bonito.",
    ),
    "es": (
        "Los niños están jugando en el jardín detrás de nuestra casa.",
        "¿Puedes decirme a qué hora abre el museo?",
        "Nunca hemos visto una puesta de sol tan bonita.",
    ),
    "fr": (
        "Les enfants jouent dans le jardin derrière notre maison.",
        "Pouvez-vous me dire à quelle heure ouvre le musée ?",
        "Nous n'avons jamais vu un si beau coucher de soleil.",
    ),
    "de": (
        "Die Kinder spielen im Garten hinter unserem Haus.",
        "Können Sie mir sagen, wann das Museum öffnet?",
        "Wir haben noch nie einen so schönen Sonnenuntergang gesehen.",
    ),
    "it": (
        "I bambini giocano nel giardino dietro la nostra casa.",
        "Puoi dirmi a che ora apre il museo?",
        "Non abbiamo mai visto un tramonto così bello.",
    ),
    "nl": (
        "De kinderen spelen in de tuin achter ons huis.",
        "Kunt u mij vertellen hoe laat het museum opengaat?",
        "We hebben nog nooit zo'n mooie zonsondergang gezien.",
    ),
    "pl": (
        "Dzieci bawią się w ogrodzie za naszym domem.",
        "Czy może mi pan powiedzieć, o której otwiera się muzeum?",
        "Nigdy nie widzieliśmy tak pięknego zachodu słońca.",
    ),
}
OTHERS: dict[str, tuple[str, ...]] = {
    "ru": ("Дети играют в саду за нашим домом.", "Вы можете сказать, когда открывается музей?"),
    "uk": ("Діти граються в саду за нашим будинком.",),
    "bg": ("Децата играят в градината зад къщата ни.",),
    "ja": ("子供たちは家の裏の庭で遊んでいます。",),
    "zh": ("孩子们在我们家后面的花园里玩。",),
    "ko": ("아이들이 우리 집 뒤 정원에서 놀고 있어요.",),
    "ar": ("الأطفال يلعبون في الحديقة خلف منزلنا.",),
    "fa": ("بچه‌ها در باغ پشت خانهٔ ما بازی می‌کنند.",),
    "el": ("Τα παιδιά παίζουν στον κήπο πίσω από το σπίτι μας.",),
    "sv": ("Barnen leker i trädgården bakom vårt hus.", "Kan du säga mig när museet öppnar?"),
    "da": ("Børnene leger i haven bag vores hus.", "Kan du sige mig, hvornår museet åbner?"),
    "no": ("Barna leker i hagen bak huset vårt.", "Kan du si meg når museet åpner?"),
    "gl": ("Os nenos xogan no xardín detrás da nosa casa.",),
    "ca": ("Els nens juguen al jardí darrere de casa nostra.", "Em pots dir a quina hora obre el museu?"),
    "hr": ("Djeca se igraju u vrtu iza naše kuće.",),
    "sk": ("Deti sa hrajú v záhrade za naším domom.",),
    "lt": ("Vaikai žaidžia sode už mūsų namo.",),
    "sw": ("Watoto wanacheza bustanini nyuma ya nyumba yetu.",),
    "tl": ("Naglalaro ang mga bata sa hardin sa likod ng bahay namin.",),
    "eo": ("La infanoj ludas en la ĝardeno malantaŭ nia domo.",),
    "la": ("Pueri in horto post domum nostram ludunt.",),
    "eu": ("Haurrak gure etxearen atzeko lorategian jolasten ari dira.",),
    "af": ("Die kinders speel in die tuin agter ons huis.",),
    "ms": ("Kanak-kanak sedang bermain di taman di belakang rumah kami.",),
    "tr": ("Çocuklar evimizin arkasındaki bahçede oynuyor.",),
    "ro": ("Copiii se joacă în grădina din spatele casei noastre.",),
    "et": ("Lapsed mängivad meie maja taga aias.",),
    "sq": ("Fëmijët po luajnë në kopsht pas shtëpisë sonë.",),
    "cy": ("Mae'r plant yn chwarae yn yr ardd y tu ôl i'n tŷ.",),
    "ga": ("Tá na páistí ag súgradh sa ghairdín taobh thiar dár dteach.",),
}
"""Languages of which some are known and some are not: right or None, and never another."""
