#!/usr/bin/env python3
"""Writes examples/newsroom: small pages of invented news sites that copy from one another.

Run it from anywhere: python3 examples/make_newsroom.py. The pages are committed; this script only
documents how they were made. Everything in them is invented. It also writes the small input files
of the commands in the README: clusters.tsv (which pages tell the same story), results.json (search
results) and qrels.txt (relevance judgments).
"""

import html
import json
import shutil
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent
OUT = EXAMPLES / "newsroom"

STORIES = {
    "ferry": ("Night ferry to the islands returns after three winters", """
The night ferry between Port Alder and the outer islands will sail again from the first of March, the harbour board decided on Tuesday evening. The service was stopped three winters ago, when the old ship failed its inspection and no replacement could be found.
The board has now leased the Maren Vik, a smaller vessel that carried passengers on a lake in the north until last summer. She has room for ninety people and twelve cars, and she can turn in the narrow basin at Saint Orm without the help of a tug.
"People on the islands have waited long enough," said harbour master Lise Tarrant. "They have missed school days, dentist appointments and a good many weddings." The crossing will take four hours. A single ticket costs eleven crowns for islanders and nineteen for everyone else.
Not everybody is pleased. The owners of the two water taxis say that they bought larger boats because the board told them the ferry would not return. They have asked for a meeting before the first sailing.
"""),
    "library": ("Library finds map thought lost in the flood of 1931", """
Workers who were moving shelves in the basement of the Quill Street library have found a hand-drawn map of the old town that was believed to have been lost in the flood of 1931. The map, almost two metres wide, was rolled inside a length of stove pipe behind a false wall.
It was drawn by the surveyor Anselm Roke over eleven years and shows every house, well and fruit tree inside the walls. Historians knew of it only from a letter in which Roke complains that the council had paid him for half of the trees.
"The colours look as if they had been put on last week," said librarian Odile Marsh. "Whoever hid it knew that the river was coming." The paper has a few water stains along one edge and a hole where a mouse has been at work.
The library will show the map from May. Until then a copy can be seen in the reading room, where visitors have already begun to look for their own front doors.
"""),
    "bees": ("City bees make more honey than their country cousins", """
Hives on the roofs of Marrow Bay made almost twice as much honey this year as hives in the farmland around it, a count by the beekeepers' union shows. The union weighed the harvest of two hundred and six hives between June and September.
The reason is the lime trees, says union chair Petra Dolan. The city planted four thousand of them along its avenues in the sixties, and they flower just when the fields outside have been cut. Gardens and balconies fill the weeks before and after.
Country bees on the other hand found little to eat after the rape had finished flowering. In August some keepers had to feed them sugar water. "A green field is a desert to a bee if nothing in it flowers," Dolan said.
The union warns against putting hives on every roof. Wild bees live in the same parks, and they lose when there are too many mouths. It asks new keepers to plant before they buy.
"""),
    "bridge": ("Stone bridge to close for a year while its foundations are rebuilt", """
The stone bridge over the Senn will close to all traffic on the ninth of January for at least a year. Divers found in autumn that the river has washed out the ground under two of its five piers, the road office said. The deeper of the two holes would hold a delivery van.
Lorries have been kept off the bridge since October. Instruments that were set into the masonry have measured movements of up to four millimetres since then, which is still within the limits but more than in the twenty years before.
Engineers will drive a ring of steel piles around each pier, pump the water out and fill the hollow with concrete. The stones above will not be touched. The work is to cost six and a half million crowns, of which the state pays two thirds.
Cars must take the motorway bridge, eleven kilometres upstream. For walkers and cyclists a ferry will cross every ten minutes between six in the morning and midnight, free of charge.
"""),
    "choir": ("Choir of retired miners wins the song contest nobody expected it to enter", """
A choir of forty retired miners from Upper Lode has won the open song contest in Verrant, ahead of two student choirs and a group from the state opera. The oldest singer is ninety-one, the youngest sixty-three, and only six of them read music.
They had come to the city to see the exhibition of mining lamps. On the bus somebody read out the notice of the contest, and they decided to enter with the three songs that they sing at funerals. "We had no other songs with us," said their conductor, Bram Holt.
The jury praised the warmth of the sound and a bass section that it called geological. When the result was read out, the choir was in a café across the square and had to be fetched.
The prize is a recording and a concert in the large hall in November. Holt says that they will need more songs by then. The funeral songs, he added, will of course be sung as well.
"""),
    "drone": ("Hospital drones cut the journey of blood samples to nine minutes", """
Blood samples from the clinics on the east bank reach the laboratory of the Lindqvist hospital in nine minutes instead of fifty since small drones carry them over the river. The hospital published the figures on Thursday after the first half year.
The drones flew four thousand one hundred times and were grounded on eleven days because of wind. No sample was lost. Twice a drone had to come down early, both times on the football field that had been chosen for this purpose.
Doctors can now have a result while the patient is still with them, said the head of the laboratory, Inga Saar. In one case out of thirty this had changed what they did next. Before, patients were often sent home and called back the following day.
The hospital pays about as much as it paid the taxi firm. Residents under the route had complained about the noise at first; since the drones fly forty metres higher the complaints have stopped.
"""),
    "bakery": ("Last wood-fired bakery is saved by its customers", """
The last wood-fired bakery in the old town will not have to close. In five weeks its customers have bought shares for one hundred and eighty thousand crowns, enough to rebuild the oven as the fire inspectors demand. Baker Tomas Reiner had put up a notice in September that he would give up at the end of the year.
"I thought that a few regulars might put something in the jar," Reiner said. "Then a man came with a suitcase." Nine hundred people now own a piece of the bakery. They get no interest, but a loaf at Christmas for as long as there is one.
The oven was built in 1884 and has burned beech ever since. The inspectors had found cracks through which hot gas reached the beams of the house. A mason from the mountains, one of three who still know how, will line it anew in February.
For the six weeks of the work the bread will come from the oven of the open-air museum, where Reiner once learned.
"""),
    "owl": ("Owl in the tower delays the repair of the town hall clock", """
The clock of the town hall in Greyford will stay at twenty past seven until the end of June. A pair of barn owls has nested behind the western dial, and the works cannot be repaired without disturbing them, the council told people who had asked.
The clockmaker found four eggs when he opened the hatch on Monday. He closed it again and went for a coffee, as he says himself, because the old bird looked at him in a way that left no room for discussion.
Barn owls are protected, and so the scaffold that was ordered for April will come in July. The firm does not charge for the delay. Its owner has asked for a photograph of the young birds instead.
A camera now shows the nest on a screen in the entrance hall. People who come for a passport or a dog licence have been seen to stay for half an hour. The bells, which have works of their own, ring as they always did.
"""),
    "salt": ("Old salt works will store the heat of summer for winter", """
The town of Hallen wants to heat twelve hundred flats with warmth that is kept from summer to winter in the chambers of its old salt works. The council voted for the plan on Monday with two votes against. It would be the first storage of its kind in the country.
In summer a field of mirrors behind the station is to heat water to ninety degrees. The water is pumped into three caverns eighty metres under the ground, from which salt was washed until 1978. Salt rock lets little warmth through: a test with one small chamber lost a tenth in five months.
The works would cost twenty-three million crowns. Heat from it would be as dear as gas was last year, and cheaper than gas is now, the town engineer reckons.
The miners' club had feared for the museum in the upper gallery. It will stay, and will be the warmest museum in the region, the mayor promised.
"""),
    "kite": ("Kite festival breaks its record and eleven washing lines", """
More than six thousand people let kites fly on the dyke at Nordermark on Sunday, two thousand more than last year. The largest was an octopus of thirty metres that needed a tractor as an anchor. The smallest, made by a watchmaker, was the size of a stamp and flew on a hair.
A gust in the early afternoon tore loose about forty kites at once. They came down in the gardens behind the dyke, where they took eleven washing lines, a weather vane and the hat of the deputy mayor with them. Nobody was hurt.
The prize of the children went to a flying cow by the Jansen sisters, seven and nine years old. "The udder was the hard part," the younger one told the jury. The prize for the best crash was shared among all who had been there at ten past two.
The organisers collected nine thousand crowns for the rescue boat. Next year they want to put up nets.
"""),
    "tram": ("Trams will run all night from Friday to Sunday", """
From the first weekend in April the trams of Corvath will run through the night on Fridays and Saturdays. Lines one, four and seven go every half an hour, the transport office announced. Until now the last tram left the market at a quarter to one.
A trial in December had gone better than expected: on some nights more people rode at three in the morning than at ten in the evening. Taxi drivers had protested at first, but many say that they lost the long waits and kept the long journeys.
The night trams cost no extra fare. Two guards ride on each of them, paid for in part by the owners of bars and theatres. The police counted fewer fights at the market in December than in the year before, though it was also colder.
Residents along line four are promised new rails by summer. Until then the trams will go at walking pace through Tanner Street, where they squeal in the bend.
"""),
    "cheese": ("Cheese stolen in spring turns up in a wine cellar, much improved", """
Forty wheels of mountain cheese that were stolen from a dairy in Obersand in April have been found in a rented wine cellar two valleys away. The police came upon them on Wednesday when a neighbour complained about the smell.
The thieves had evidently not known how to sell them. The wheels stood on clean boards, had been turned, and were brushed with salt water. "Somebody looked after them very well," said the dairy's master, Urs Kamber, who identified them by their stamps. "Better than I had time to."
The cellar turned out to be cooler and damper than the dairy's own. Kamber and three colleagues tasted one wheel on the spot, in the presence of an officer, and found it excellent. He has since asked the owner of the cellar about the rent.
A man of fifty-two has admitted the theft. He told the police that he had become fond of the work. The court will have to decide whether that counts for him.
"""),
}

LOCAL = {
    "council": ("Council puts off vote on parking fees", """
The council has put off its vote on higher parking fees until the end of the month. Members of three parties had asked for figures about the streets around the hospital, where visitors now park for nothing. The treasurer reckons with four hundred thousand crowns a year. Shopkeepers in the centre have collected signatures against the plan and want the first half hour to stay free.
"""),
    "football": ("United lose at home after late penalty", """
A penalty in the last minute has cost United a point against Dockers. The home side had led by a header from Oram and looked safe until Pell was sent off. Coach Ferris spoke of the worst quarter of an hour since he came here. On Saturday United play away at the leaders, without Pell and without Stone, whose knee will be looked at on Monday.
"""),
    "weather": ("First frost expected at the weekend", """
The first frost of the year is expected in the night to Sunday. The weather office forecasts clear skies and minus two degrees in the valleys, minus five on the heights. Gardeners should bring in geraniums and empty their water barrels. From Tuesday it will be milder again, with rain from the west and wind that may reach gale force on the coast.
"""),
    "market": ("Flower market moves back to the square", """
The flower market moves back to the cathedral square on Thursday after two years beside the bus station. The new paving is finished except for the corner at the fountain, where workers found a Roman drain. Thirty-one stalls have taken places. They open at seven, and the first hundred customers get a tulip from the guild.
"""),
}

# Each site: name, what stands before the story, what stands behind it. Lean frames leave a copied
# story a near-duplicate; heavy ones hide it from whole-page similarity.
SITES = {
    "harbour-herald": ("Harbour Herald", "<a href=/>Home</a> <a href=/sea>Sea</a> <a href=/town>Town</a>", "<p>Harbour Herald, Pier 4. Since 1902.</p>"),
    "morning-lantern": ("The Morning Lantern", "<ul><li>News<li>Opinion<li>Sport<li>Letters</ul>", "<p>Write to the editor. The Lantern appears daily except on Sundays.</p>"),
    "valley-post": ("Valley Post", "<nav><a>Start</a><a>Villages</a><a>Markets</a><a>Weather</a></nav>", "<footer>Valley Post and Advertiser. Printed on paper from our own mill.</footer>"),
    "daily-ledger": ("Daily Ledger", "<div id=menu><a>Front page</a> | <a>Money</a> | <a>World</a> | <a>Shipping</a></div>", "<div>Copyright Daily Ledger. Quotes are delayed by fifteen minutes.</div>"),
    "wire-north": ("Wire North", "", "<p>(Wire North)</p>"),
    "metro-now": ("Metro Now", """<div class=top><a>Top stories</a> <a>Live</a> <a>Video</a> <a>Podcasts</a> <a>Horoscope</a> <a>Puzzles</a> <a>Newsletter</a> <a>Shop</a></div>
<div class=ticker>Breaking: dog on platform two. Traffic: slow on the ring road between exits four and nine. Markets: crown steady against the thaler, tin up, wool down.</div>
<div class=ad>Tired of waiting? The new Presto card takes you through every gate in half a second. Now with twenty free rides for students and anyone who brings a friend.</div>""",
        """<div class=related><h4>You may also like</h4><ul><li>Ten balconies that will make you jealous<li>We tried the longest escalator in the country<li>Quiz: which tram line are you?<li>Why your neighbour gets up at four<li>The sandwich everybody is talking about</ul></div>
<div class=signup>Get Metro Now in your inbox every morning at six, before anybody else knows. No spam, we promise, and you can leave whenever you like.</div>
<div class=legal>Metro Now is a service of Metro Media. Terms, privacy, cookies, jobs, advertise with us. Prices include tax. All times are local.</div>"""),
    "gazette-archive": ("Gazette Archive", """<table><tr><td>Search the archive</td><td>Browse by year</td><td>Browse by place</td><td>Help</td></tr></table>
<p>You are reading a page from the archive of the former Evening Gazette. The text was typed by volunteers and may contain errors; please report what you find.</p>""",
        "<p>Cite this page with its number. The Gazette Archive is kept by the Society for Local History and is open to everybody without charge.</p>"),
}

# Which story runs where, and how the site changed it: (old, new) replacements.
RUNS = [
    ("ferry", "wire-north", []), ("ferry", "harbour-herald", [("on Tuesday evening", "last night")]), ("ferry", "morning-lantern", []),
    ("ferry", "valley-post", [("eleven crowns", "11 crowns"), ("nineteen", "19")]), ("ferry", "metro-now", []), ("ferry", "gazette-archive", []),
    ("library", "wire-north", []), ("library", "morning-lantern", [("Workers who were moving", "Men moving")]), ("library", "daily-ledger", []), ("library", "gazette-archive", []),
    ("bees", "wire-north", []), ("bees", "valley-post", []), ("bees", "daily-ledger", [("twice as much", "double the")]), ("bees", "metro-now", []), ("bees", "morning-lantern", []),
    ("bridge", "wire-north", []), ("bridge", "valley-post", []), ("bridge", "harbour-herald", [("six and a half million", "6.5 million")]), ("bridge", "metro-now", []),
    ("choir", "wire-north", []), ("choir", "morning-lantern", []), ("choir", "gazette-archive", []), ("choir", "valley-post", [("in Verrant", "in the capital")]),
    ("drone", "daily-ledger", []), ("drone", "wire-north", []), ("drone", "metro-now", []), ("drone", "morning-lantern", []),
    ("bakery", "wire-north", []), ("bakery", "daily-ledger", []), ("bakery", "harbour-herald", []), ("bakery", "valley-post", []), ("bakery", "morning-lantern", [("suitcase", "briefcase")]),
    ("owl", "valley-post", []), ("owl", "morning-lantern", []), ("owl", "metro-now", []),
    ("salt", "wire-north", []), ("salt", "daily-ledger", []), ("salt", "valley-post", []),
    ("kite", "harbour-herald", []), ("kite", "wire-north", []), ("kite", "gazette-archive", []),
    ("tram", "metro-now", []), ("tram", "daily-ledger", []), ("tram", "morning-lantern", []),
    ("cheese", "valley-post", []), ("cheese", "wire-north", []), ("cheese", "daily-ledger", []), ("cheese", "morning-lantern", []),
]

GERMAN = ("Straßenbahn fährt wieder über die große Brücke", """
Nach zwei Jahren fährt die Straßenbahn wieder über die große Brücke. Am Samstag früh um fünf rollte der erste Wagen, mit Blumen geschmückt, über die neuen Gleise. Die Bürgermeisterin begrüßte die Fahrgäste mit Kaffee und süßen Brötchen.
Während der Arbeiten mussten täglich dreißigtausend Menschen auf Busse umsteigen. Das sei für alle eine Prüfung gewesen, sagte der Leiter des Verkehrsamts, Jörg Müßig. Nun dauere die Fahrt vom Bahnhof zur Universität nur noch zwölf Minuten.
Die Kosten liegen mit neun Millionen Kronen über dem Plan, weil unter dem Pflaster alte Röhren aus Blei gefunden wurden. Geschäfte an der Südseite hoffen auf mehr Kundschaft; einige hatten während der Bauzeit geschlossen.
""")

CHINESE = ("图书馆发现失踪九十年的古地图", """
图书馆工作人员在整理地下室书架时，发现了一幅被认为在一九三一年洪水中遗失的手绘古城地图。这幅地图宽近两米，卷在一段旧烟囱管里，藏在一堵假墙后面。
地图由测量师花费十一年时间绘制，标出了城墙内的每一座房屋、水井和果树。历史学者过去只从一封信中知道它的存在，测量师在信里抱怨市政府只付了一半果树的钱。
馆长说，颜色看上去好像上个星期才涂上去的，把它藏起来的人一定知道河水要来了。地图的一边有几处水渍，还有一个老鼠咬出来的洞。
图书馆将从五月开始展出这幅地图。在此之前，读者可以在阅览室看到它的复制品，许多人已经开始在上面寻找自己家的大门。
""")

JAPANESE = ("市役所の時計、フクロウの巣で修理延期", """
市役所の時計は六月の終わりまで七時二十分で止まったままになる。西側の文字盤の裏にメンフクロウのつがいが巣を作っており、鳥を驚かさずに修理することができないと市が発表した。
時計職人が月曜日に点検口を開けたところ、卵が四つ見つかった。職人はすぐに蓋を閉め、コーヒーを飲みに行ったという。親鳥の目つきには話し合いの余地がなかったそうだ。
足場の設置は四月から七月に変更された。業者は延期の費用を請求せず、その代わりにひなの写真を一枚求めている。
""")


def paragraphs(text):
    return "\n".join(f"<p>{html.escape(line, quote=False)}</p>" for line in text.strip().splitlines())


def page(site, title, body, lang="en"):
    name, before, after = SITES[site]
    return f"""<!doctype html>
<html lang="{lang}">
<head><meta charset="utf-8"><title>{html.escape(title)} - {name}</title></head>
<body>
<h3>{name}</h3>
{before}
<h1>{html.escape(title)}</h1>
{body}
{after}
</body>
</html>
"""


def write(path, text, encoding="utf-8"):
    target = OUT / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text.encode(encoding))


# Pages whose name is not the name of their story.
OTHER_NAMES = {"choir-print": "choir", "kite-week-1": "kite", "kite-week-2": "kite", "salt-broken": "salt",
               "strassenbahn-1999": "strassenbahn", "tram-short": "tram"}


def write_inputs():
    """The input files of `evaluate`, `refine` and `transfer`."""
    pages = sorted(path.relative_to(OUT).as_posix() for path in OUT.rglob("*.html"))
    lines = []
    for name in pages:
        stem = Path(name).stem
        lines.append(f"{name}\t{OTHER_NAMES.get(stem, stem)}\n")
    (EXAMPLES / "clusters.tsv").write_text("page\tcluster\n" + "".join(lines))
    ranked = ["wire-north/bakery.html", "valley-post/bakery.html", "metro-now/market.html",
              "morning-lantern/bakery.html", "wire-north/cheese.html", "daily-ledger/bakery.html",
              "harbour-herald/market.html", "valley-post/cheese.html"]
    results = [{"url": f"http://{name}", "html": (OUT / name).read_text()} for name in ranked]
    (EXAMPLES / "results.json").write_text(json.dumps({"results": results}, indent=1) + "\n")
    (EXAMPLES / "qrels.txt").write_text("1 0 bakery.html 2\n1 0 cheese.html 1\n2 0 tram-short.html 1\n")


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    for story, site, changes in RUNS:
        title, text = STORIES[story]
        for old, new in changes:
            assert old in text, (story, old)
            text = text.replace(old, new)
        write(f"{site}/{story}.html", page(site, title, paragraphs(text)))
    # Frames around different stories.
    for site in ("harbour-herald", "metro-now", "daily-ledger", "gazette-archive"):
        for story, (title, text) in LOCAL.items():
            town = SITES[site][0]
            write(f"{site}/{story}.html", page(site, f"{title}", paragraphs(f"{town}. {text.strip()}"
                  if site != "metro-now" else text)))
    # An exact copy under another name.
    write("morning-lantern/choir-print.html", (OUT / "morning-lantern/choir.html").read_text())
    # The same page a week later: only the date and the visitor count have changed.
    stamp = '<p class="meta">Page last changed on {} November 2025. You are visitor number {}.</p>'
    title, text = STORIES["kite"]
    for name, day, visitors in (("kite-week-1", 3, 10482), ("kite-week-2", 10, 11967)):
        write(f"morning-lantern/{name}.html", page("morning-lantern", title, paragraphs(text) + stamp.format(day, visitors)))
    # A story contained in a longer one.
    short = STORIES["tram"]
    write("wire-north/tram-short.html", page("wire-north", short[0], paragraphs(short[1])))
    write("harbour-herald/week-in-review.html", page("harbour-herald", "The week in review",
          paragraphs(short[1]) + paragraphs(STORIES["salt"][1].strip().splitlines()[0])))
    # German, once in UTF-8 and once in the charset of its time, which is said in the page.
    german = page("daily-ledger", GERMAN[0], paragraphs(GERMAN[1]), lang="de")
    write("daily-ledger/strassenbahn.html", german)
    write("daily-ledger/strassenbahn-1999.html", german.replace('<meta charset="utf-8">',
          '<meta http-equiv="Content-Type" content="text/html; charset=iso-8859-1">'), encoding="iso-8859-1")
    # Chinese and Japanese pairs: one story, lightly edited.
    write("wire-north/map-zh.html", page("wire-north", CHINESE[0], paragraphs(CHINESE[1]), lang="zh"))
    write("gazette-archive/map-zh.html", page("wire-north", CHINESE[0],
          paragraphs(CHINESE[1].replace("上个星期", "昨天").replace("宽近两米", "宽约两米")), lang="zh"))
    write("wire-north/owl-ja.html", page("wire-north", JAPANESE[0], paragraphs(JAPANESE[1]), lang="ja"))
    write("harbour-herald/owl-ja.html", page("wire-north", JAPANESE[0],
          paragraphs(JAPANESE[1].replace("月曜日", "火曜日")), lang="ja"))
    # A broken page: tags that never close, a stray end tag, a comment that never ends.
    title, text = STORIES["salt"]
    write("harbour-herald/salt-broken.html",
          f"<html><head><title>{title}</title><body><div class=x <p>Harbour Herald<b>{title}</div></span>\n"
          f"<p>Harbour Herald</p>{paragraphs(text)}<table><tr><td>Harbour Herald<!-- never closed")
    # Nothing but markup, and next to nothing.
    write("metro-now/empty.html", "<!doctype html><html><head><script>track()</script></head><body><div></div></body></html>\n")
    write("metro-now/error.html", "<!doctype html><title>404</title><p>Page not found.</p>\n")
    write_inputs()
    print(sum(1 for path in OUT.rglob("*.html")), "pages")


if __name__ == "__main__":
    main()
