"""Words of which the keys of JSON objects usually consist, in the singular. Written by
`scripts/build_field_words.py`; not to be changed by hand."""

__all__ = ["FIELD_WORDS"]

_WORDS = """
about absolute abstract abuse acceleration accept access accessibility accessible accessory accommodation account
accuracy acquisition act action activate active activity actor actual ad add added additional address addresse adjust
administration ads adult advanced adventure advertising advice advocacy adx affair affected affiliation after age
agency agent aggregate agile agricultural agroforestry ai aid air aircraft airline airport album alert algorithm alia
align alignment all allergy allow allowed alpha alphabet alt alternative altitude ambient amenity amount amplitude
analyse analysi analytic analyze analyzer anatomy anchor and anesthesia angle animal animation anime annotated
annotation annual annualrevenue answer anthropology antibody antigen anxiety api apikey apk app append appliance
application apply appointment appraisal approach approval approve aquaculture arch architectural architecture archive
archived area arg argument arn array arrival article artifact artificial artist artistic artwork arxiv as ask aspect
assert assess assessment asset assign assigned assignee assignment assistance assistant associated association
assumption assurance astronomy at athlete ato attach attachment attack attendance attendee attribute audience audio
audit auth authenticate authentication author authorize auto autocomplete automated automatic automation autonomou
availability available avatar average aviation away axi back backend background backup balance balancer band bandwidth
bank banking banner bar barcode base based baseline basi basic batch battery bayesian bbox bcc bed before behavior
benefit best between bg bia biase bible bike billing binary biochemical bioethic biology biometric bird birth bit
bitrate blacklist blame blob block blockchain blog blood bmi board body bold bond book booking border bot bottom bound
bounding box brain branch branche brand break breakdown breakpoint breed bridge brightness broadcast brochure browse
browser bucket budget buffer build building built bulk bullet bundle burn burned business button buy by byte cabin
cache calculate calculator calendar calibrate call callback callee caller calory camera campaign can cancel cancer
canva cap capability capacity capital capture car carbon card care cargo carrier cart case cash cashflow cast cat
catalog categorical category cause cc celestial cell center cep certificate chain challenge champion change changed
changelog channel chapter char character characteristic charge charging chart chat check checked checker checkin
checklist checkout chemical chemistry child children choice chunk cid circuit citation city claim class classe
classification classify clean cleaning cleanliness clear cli click client climate clinical clip clipboard clone close
closed clothing cloud cluster co coaching cocktail code codegen coding coefficient cohesion coin col collaborator
collect collection color column comfort command comment commercial commit commitment committer commodity common
communication community company comparative compare comparison compatibility compatible compensation competition
competitor compile complete completed completion complexity compliance component composite composition compound
compress compression compute computer concentration concept conception concern conclusion condition conduct conference
confidence config configuration configure confirm conflict connect connection connectivity connector consensu
consequence conservation consistency console constraint construction constructor consultant consultation consulting
consumer consumption contact contain container contamination content contest context continent continuation continue
contract contradict contrast contribution control controller convergence conversation conversion convert converter
cookie cooking coordinate copy copyright core corporate corpu correction cosmic cost counseling counselor count
country county coupon course court cover coverage covered covid cpu crawl create created creation creator credential
credit crew crime criminal crisi criteria critic criticism critique crm crop cross crossing crypto cryptocurrency css
csv ctx cue cuisine cultural culture currency current currently curriculum cursor custom customer customize cut cutoff
cwd cyber cycle daily damaged dance dancer dart dashboard data database dataset date datetime day db deadline deal
debug decimal decision deck decode decrypt deep default definition degree delay delegate delete deleted deletion
delivery delta demand democracy demographic density dental dentist depart department departure dependency deploy
deployment deprecated depth desc describe description design desired desktop destination detail detailed detect
detection determine dev developer development device dex diagnose diagnosi diagram dialog diameter dictionary diet
diff difference difficulty diffusion digital dilemma dimension dir direct direction director directory disability
disable disabled disagreement disaster discipline disclosure disconnect discount discover discovered discovery disease
dish disk disorder display disposition distance distributed distribution district diversity dividend division dna dns
dob doc doctor document documentation doi domain domainname donate donation done doneness donor dosage dose double
down download draft drafting drag draw drawing drive driver drone drop drug dry dst due duplicate duration dynamic
earning earthquake ebs ecg echo economic economy ecosystem edge edit edition education effect effective effectiveness
efficiency effort elapsed electrical element elevation eligibility else ema email embedded emergency emission emoji
emotion emotional employee employment empty enable enabled encode encoded encoding encrypt encrypted encryption end
endangered endnote endpoint enemy energy engagement engine engineering enhance enhanced enhancement enroll ens
enterprise enthalpy entity entry env environment environmental enzyme epic episode epoch epsilon equality equation
equine equipment equity era error est establishment estate estimate estimated etag eth ethic ethical ethicality ethnic
ethnicity eval evaluate evaluation event evidence evolution evolutionary exact exam example excel exception exchange
excitation exclude exec execute execution executive exercise exist existing exit exoplanet expand expect expected
expenditure expense experience experiment expertise expiration expire expiry explain explanation explore exponent
export exposure expr express expression ext extended extension external extra extract eye fabric face facebookfanpage
facility fact factor failed failure fallback falsifiability family farm fashion fast fat fault feasibility feature
featured fee feed feedback fertilizer fetch fiber fiction field figure file filename filing fill film filter final
finance financial find finder finding fingerprint fire firewall firm firmware first firstname fish fit fitness fixed
flag fleet flex flight float floor flow fluid flux focu folder folding follow follower font food football footnote for
force forecast foreign forensic forex fork form format formation formula forum forward forwarding fossil fpga fps
frame framework fraud free freq frequency friction from fuel full function functional functionality fund funding
fungal furniture future fuzzy gain game gap garnish gas gate gateway gdp gear gen gender general generate generated
generation generator generic genetic genomic genotype genre genu geo geocode geocoding geographic geographical
geography geolocation geometry geothermal geriatric gestational get gif gift git gl glass global globalization glucose
goal golf gone good governance government gps grade gradient grammar granularity graph graphic graphql gravatar
gravity green greenhouse greet greeting grep grid gripper group growth gte guess guest guidance guide guideline habit
habitat hand handle hardware harvest has hash hashtag hazard head header heading headless headline health healthcare
heart heat height hello help helper hex hidden hide hierarchy high highlight hint hip hire historical history hit hl
holder holding holiday home horizon horizontal hormone hospital hospitality host hostname hot hotel hotline hour
hourly house hover hr href hs html http hub human humanitarian humidity hvac hybrid hypothesi iata icao ice icon id
identifier identify identity idle ids idx if iframe ignore image immediately impact implant implementation import
important improve improvement in inbox inche incident include inclusive income increase index indexe indicator indice
individual indoor industry inequality infant infection inference inflation influence influencer info information
infrastructure ingest ingredient init initial initialize initiate injury inline inner innovation input inquiry insect
insert inserted insight inspect inspection install instance institution institutional instruction instructor
instrument insurance integration intelligence intensity intent interact interaction interactive interest interface
interference interior internal international internet interpret interpretation interval intervention interview invalid
inventory invertebrate investment invitation invite invoice invoke involved ip ipv is isbn isin iso issue italic item
iteration jewelry job jobtitle join joint joke journal journalism journalist json judge jurisdiction justice
justification juz kanji keep kernel key keyword kg kill kind kms knowledge known lab label labor land landing lang
language large last lastname lat latency latest latin latitude launch law layer layout lead leader leaderboard
leadership leadsource leadstatu league learn learning leave led ledger left leg legal legend length lesson letter
level leverage library license life lifecyclestage lifetime lift light lighting like likelihood limit limitation line
linguistic link linked linkedinbio liquid list listing literacy literary literature live llm lng load loan lobby local
locale location lock locked log logged logical login logistic logo logout lon long longitude look lookup loop loss low
lyric mac machine magazine magnetic mail mailbox main maintainer maintenance make malware manage management manager
manifest manual manufacture manufacturer manufacturing many map mapping margin marine markdown marker market marketing
marketplace mask mass match matche matched matching material math matrix maximum mcp me meal meaning measure
measurement media medical medication medicine medium meeting member membership meme memory menstrual mental mention
mentor menu merge merged message meta metabolism metadata method methodology metric microbial microbiology
microorganism microscopy migration milestone mime min minecraft mineral mini minified minimum mint minute minutely
mirror missing mission mit mixed mobile mobilephone mode model modification modified modifier modify modulation module
moisture molecular molecule money monitor monitoring month monthly mood moral more most motion motor mouse move
movement mover movie movy ms msg multi multimedia multiple multiply muscle museum music mutation mute name namespace
nanotechnology native natural navigate nct ne nearby nearest need needed negative negotiation neighborhood nested net
network networking neural neurological neuron new newsletter newspaper next nft nmap no node noise non none nonprofit
normalize not notation note notebook notification novel now npm nsfw num number numbering numberofemployee nursing
nutrient nutrition oauth object objective observation obstacle occasion occupancy occupation ocr odd odometer of off
offer office official offset ohlc ohlcv old on oncology one only onto op open opening operating operation
operationalization operator opinion opponent opportunity optical optimization optimize option optional or oral order
orderbook ordering org organ organism organization organize organizer orientation origin original os other otp out
outbreak outcome outer outlet outline output overall override overview overwrite owner ownership package packaging
padding page pagination pain painting pair palette paper par paragraph parallel param parameter parcel parent parking
parse part participant particle party passenger password patch patche path pathology patient pattern pause pay payload
payment pdf pediatric peer penalty pending people per percent percentage perform performance period permalink
permanent permission perplexity person persona personal personality perspective pest pet pharmaceutical pharmacy phase
philosopher philosophy phone photo phrase physical pick pickup picture pid pin ping pinned pipe pipeline pitch pk
place placeholder placement plan planet planner planning plant planting platform play playback player playlist
playwright plot plugin pmid png pod point pokemon policy politic political poll pollutant pollution polygon polymer
pool popular population port portal portfolio pos pose position possible post postal potential power practice prd pre
precision predict prediction preference preferred prefix pregnancy premise premium presence present presentation
preservation press pressure prevalence preview previou price pricing primary principle print printmaking prior
priority privacy private pro probability problem procedure process processe processing processor product production
productivity profile profit program programming progress project prometheu promote promotion prompt pronounce property
proposal propulsion protagonist protect protected protection protein protocol prototype provide provider province
proxy psychiatric psychological psychology public publication publicity publish published publisher publishing pubmed
pull pump purchase purge purpose push put puuid puzzle qrcode qualification qualitative quality quantitative quantity
quantum quarter qubit queer query question queue quick quota quote race radiation radio radiology radiu random range
rank ranking rate rating ratio rationale raw reach reactant reaction read reading ready real reality realtime reason
reasoning rebase reboot receipt receive received receiver recent recently recipe recipient recognition recognize
recommend recommendation recommended record recording rectangle recurring recursive recycling redeem redirect reduced
reduction reel ref reference refinement reflect refresh refugee refund regex regime region register registration
registry regulation rehabilitation related relation relationship relative release relevant religion religiou reload
remain remaining reminder remote removal remove removed rename render renew renewable reopen repair repetition replace
replica replication reply repo report repository representation reproductive reputation request requested requester
require required requirement research researcher reservation reserve reservoir reset residential resistance resize
resolution resolve resolved resource respiratory respond response rest restart restaurant restore result resume
retention retrieve retry return reuse rev revenue reverse revert review reviewer revise revision revoke reward rgb
right risk road robot robotic rock rocket roi role rollback room rotate rotation round route routing row rsi rss rule
run running runtime safe safesearch safety salary sale sample sampling satellite satisfaction saturation save saved
saving scalability scale scaling scan scanner scatter scenario scene schedule scheduled schema schematic scheme
scholar school scope score scrape scraper screen screenshot script scroll sdk sea search searche season seat sec
second secret section sector secure security seed segment segmentation select selected selection selector self sell
selling sem semantic send sender sensitive sensitivity sensor sentence sentiment seo sequence sequentialthinking
serial serp server serverless service sery session set setting severity sex sha shading shape share shared sheet shell
shelter shift ship shipment shipping shopping short show shuffle shutdown sid side sign signal signature signed sim
similar similarity simple simulate simulation simulator since single site sitemap size skill skin sku sleep slippage
slope slot slowly slug small smart smoker smoking sms snapshot snippet soccer social society sociology software soil
solar sold solution solve solvent song sort sound source spa space spacecraft spacing span spawn speak speaker spec
special specialization specialty specific specification specy speech speed spell split spoken sponsorship sport sprint
sql square src ssh ssl stability stack staff stage staged stain stakeholder stamp standard standing star stargazer
starred start started starting stat state statement static station statistic statu statuse stdin step stock stop
storage store story str strategic strategy stream street strength strict strike string stroke structural structure
structured student study style sub subject submission submit subnet subreddit subscribe subscriber subscription
substance substrate subtask subtotal subtract subtype subway success suffix sugar suggest suggested suggestion suite
sum summarization summarize summary supplier supply support supported supporting surface surgery surveillance survey
survival suspend sustainability sustainable svg swagger swap swarm swimming switch symbol symptom sync syntax
synthesize system tab table tag tail take tap target task tavily tax tbs tcin tcp teacher team technical technique
technology telecom telescope temp temperature template tempo tenant term terminate terrorism test testing text textile
than the theater theme then theory therapist therapy thickness think thinking thought thread threat threshold through
thrust thumbnail ticker ticket tier time timeframe timeline timeout timestamp timezone tiny tip tissue title tls to
today todo todoist toggle token tolerance tone tool tooth top topic total tourism tournament toxicity trace track
tracking trade trading traditional traffic trail train training trait transaction transcribe transcript transfer
transform transformation transit transition translate translation transmit transport transportation trash travel
treatment tree trend trending trial trigger trip tropical troubleshoot ttl tts tunnel turn turnover tv tweet twist
twitterhandle tx txt type typography uav udid uf ui uid unarchive uncertainty underline underlying unexpected union
unique unit universal university unknown unlock unmute unprotect unpublish unread unsubscribe until up update updated
upgrade upload upper upscale upsert upstream urban urgency uri urine url usability usage use used user useragent
username using utc util utilization uuid vacation vaccination vaccine valid validate validation validator validity
valorant valuation value var variable variant variation vector vegetarian vegetation vehicle velocity vendor venue
verb verbose verification verified verify verse version vertical vessel victim video view viewer viewport vin
violation violence virtual viru viscosity visibility visible vision visit visitor visual visualization visualize vital
vm vocabulary voice vol volcano voltage volume volunteer voter vpc vs vulnerability waist wait wall wallet war
warehouse warning waste watch watcher water wavelength waypoint weaknesse weather web webhook webpage website week
weekly weight welfare what wheel where whitelist whoi whole width wiki wildlife wind wine with within women word work
worker workflow workforce working workload worklog workout workshop workspace world wrap write writing x y yaml year
yield you youth z zip zipcode zone
"""

FIELD_WORDS = frozenset(_WORDS.split())
