//! Words.

use std::sync::LazyLock;

use super::Draw;

const WORDS: &str = "access account action active adapter address agenda alarm album alias alpha amount anchor \
angle animal answer apple april archive area array arrow article asset atlas august author autumn avatar axis \
backup badge bakery balance banana banner barrel basket battery beacon berry billing binary bird blanket block \
board boat body bold bonus book border bottle bottom bounds branch bread bridge bridge brush bucket budget \
buffer build bundle button cabin cable cache camera candle canvas captain carbon card cargo carpet castle \
catalog cedar cellar chain chair change channel chapter charge chart cherry chess chicken choice circle \
citizen client clock cloud cluster coast coffee colony color column comment common compass concert contact \
contract cookie copper copy corner cotton counter country course cover crane cream credit crystal customer \
cycle daemon daily dance data dawn day deadline debug december decimal default delta deploy desert design \
desk detail device diagram diary digest dinner display doctor domain donkey door draft dragon drawer dream \
driver drum duck eagle early east echo editor effect eight electric elephant email ember empty engine english \
entry error evening event example expense export extra fabric factory falcon family farm fast feather feature \
february fence ferry fiction field figure filter final finance finger fire first fish flag flame flavor flight \
floor flower folder forest format fountain fox frame freedom french friday frog frost fruit future galaxy \
gallery game garden garlic gate general german ghost giant ginger glass global glove gold grain grape graph \
grass gravel green grid grocery group guard guest guide guitar hammer handler harbor hardware harvest hash \
heart heavy hello helper hero hidden highway hill history holiday home honey hood horizon horse hotel hour \
house human hundred hunter idea image import index info inner input insect install invoice iron island item \
ivory jacket january jelly job journal judge juice july jump june jungle junior kernel kettle key kitchen kite \
knife label ladder lake lamp language laptop large latest launch lava leader leaf league lemon length lesson \
letter level library license light lime linear lion list little local locker logic london lotus lunch machine \
magic magnet mail main manager mango manual maple marble march margin marine market mask master match matrix \
maximum meadow meal measure media meeting melody member memory menu merge metal meter metric midnight milk \
million mineral minute mirror mission mobile model module monday money monitor monkey month moon morning \
mother motor mountain mouse movie museum music narrow nation native needle nest network news night noble node \
noise normal north notes november number object ocean october office olive onion open option orange orbit \
order origin output oven owner oxygen packet page paint palace panel paper parent parking parser partner \
party pasta patch path pattern payment peace peach pencil penguin pepper person phone photo piano picture \
pigeon pilot pine pirate pixel pizza place plan planet plastic platform player plugin pocket poem point polar \
policy pond portal potato power praise present price prince print private process product profile program \
project proof public pulse pump puzzle python quality quarter queen query quiet rabbit race radio rain random \
range rapid raven reader record recipe red region release remote repair report request result reverse review \
ribbon rice ring river road robot rocket roof room root rose round route royal rubber sailor salad salmon \
salt sample sand saturday scale scanner schedule school science scooter score screen script sea search season \
second secret section seed senior september sequence series server session settings seven shadow shape shared \
sheep sheet shelf shell shield ship shirt shop short signal silent silver simple singer single sister size \
sketch sky small smart smoke snake snow social socket soda soft solar soldier source south space spark speaker \
special spider spirit sponge spoon sport spring square stable stage staging stamp star start state station \
status steam steel step stone storage store storm story stream street string strong student studio style sugar \
suite summary summer sun sunday supply support surface survey swift switch symbol system table tablet tail \
talent target task tea team temple ten tender tennis test texture thank theme theory thread throat thunder \
thursday ticket tiger timber time title toast today token tomato tool tower town track trade traffic train \
transfer travel tree trial triangle trophy truck tuesday tunnel turkey turtle twelve twist umbrella uncle \
under unique unit upload urban user valley value vanilla vector velvet vendor version video view village \
violin visit vision voice volume wagon walker wallet water wave weather wednesday week welcome west whale \
wheel white widget window winter wire wizard wolf wonder wooden word worker world writer yellow yesterday \
young zebra zero zone";

const SMALL: &str = "a the and of to in on is for with it we you not are be this that as at by all but or so \
no yes one two new old my our was has have do go up out more then when must will can only";

const ABROAD: &[&str] = &[
    "café",
    "naïve",
    "über",
    "Müller",
    "straße",
    "señor",
    "jalapeño",
    "façade",
    "crème",
    "smörgås",
    "Łódź",
    "žluť",
    "привет",
    "мир",
    "данные",
    "日本",
    "東京",
    "文件",
    "测试",
    "한국",
    "αβγ",
    "λ",
    "São",
    "Zürich",
    "été",
    "Åse",
    "øl",
    "🙂",
    "🚀",
    "✓",
    "→",
    "€",
    "°C",
    "…",
    "–",
    "½",
];

static COMMON: LazyLock<Vec<&str>> = LazyLock::new(|| WORDS.split(' ').collect());
static FILLERS: LazyLock<Vec<&str>> = LazyLock::new(|| SMALL.split(' ').collect());

impl Draw {
    /// A word in lower case: three in four from a list, the others made up.
    pub fn word(&mut self) -> String {
        self.owned(|draw| if draw.chance(75) { draw.pick(&COMMON).to_owned() } else { draw.syllables(1, 3) })
    }

    /// One of the words that any sentence has.
    pub fn small_word(&mut self) -> &'static str {
        self.pick(&FILLERS)
    }

    pub fn foreign(&mut self) -> &'static str {
        self.pick(ABROAD)
    }

    /// A made-up word that can be spoken.
    pub fn syllables(&mut self, low: u32, high: u32) -> String {
        const STARTS: &[&str] = &[
            "b", "c", "d", "f", "g", "h", "j", "k", "l", "m", "n", "p", "r", "s", "t", "v", "w", "z", "br",
            "ch", "cl", "dr", "fl", "gr", "pl", "qu", "sh", "sk", "sp", "st", "th", "tr", "x", "y", "",
        ];
        const MIDDLES: &[&str] = &["a", "e", "i", "o", "u", "ai", "ea", "ou", "y", "oo"];
        const ENDS: &[&str] =
            &["", "", "", "n", "r", "s", "t", "l", "m", "x", "ck", "ng", "nd", "st", "p", "k", "zz"];
        let mut word = String::new();
        for _ in 0..self.between(low, high) {
            word += self.pick(STARTS);
            word += self.pick(MIDDLES);
            word += self.pick(ENDS);
        }
        if word.len() < 2 { format!("{word}n") } else { word }
    }

    /// Letters and digits without sense.
    pub fn jumble(&mut self, low: u32, high: u32) -> String {
        let alphabet: &[u8] = match self.between(0, 4) {
            0 => b"0123456789abcdef",
            1 => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
            2 => b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
            _ => b"abcdefghijklmnopqrstuvwxyz",
        };
        (0..self.between(low, high)).map(|_| char::from(self.pick(alphabet))).collect()
    }

    /// Words with spaces between, small ones among them.
    pub fn words(&mut self, low: u32, high: u32) -> String {
        let count = self.small(low, high);
        let words: Vec<String> = (0..count)
            .map(|_| match self.between(0, 99) {
                0..30 => self.small_word().to_owned(),
                30..34 => self.between(0, 3000).to_string(),
                34..36 => self.foreign().to_owned(),
                _ => self.word(),
            })
            .collect();
        words.join(" ")
    }

    /// Words with spaces between, and no small ones.
    pub fn plain_words(&mut self, low: u32, high: u32) -> String {
        let words: Vec<String> = (0..self.small(low, high)).map(|_| self.word()).collect();
        words.join(" ")
    }

    /// Words with a capital and a full stop.
    pub fn sentence(&mut self, low: u32, high: u32) -> String {
        let mut text = capital(&self.words(low, high));
        if text.len() > 30 && self.chance(25) {
            let at = text.find(' ').unwrap_or(0);
            if at > 0 {
                text.insert(at, ',');
            }
        }
        text + self.pick(&[".", ".", ".", "!", "?"])
    }
}

/// Returns true if it is one of the words that any sentence has.
pub fn is_small_word(word: &str) -> bool {
    FILLERS.contains(&word)
}

/// With its first letter in upper case.
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
