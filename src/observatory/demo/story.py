"""What the mesh talks about: equity research, with sources and numbers of invented companies.

Only NVDA is a real company, and only public facts about it are used; the sentence about its
fiscal year that is wrong belongs to the incident `infection`, and the correct one is next to it.
"""

from typing import NamedTuple


class Lead(NamedTuple):
    """One question and how it is answered."""

    question: str
    query: str
    source: str
    finding: str
    fact: str


class Company(NamedTuple):
    ticker: str
    name: str
    angle: str
    leads: tuple[Lead, ...]
    headline: str


class Size(NamedTuple):
    """How large a report is."""

    title: str
    leads: int
    sections: int
    is_modelled: bool
    is_checked: bool


def _lead(question: str, query: str, source: str, finding: str, fact: str) -> Lead:
    return Lead(question, query, f"https://{source}", finding, fact)


COMPANIES = (
    Company(
        "NVDA", "NVIDIA",
        "Data centre revenue decides the quarter; everything else is rounding.",
        (
            _lead("Verify when NVIDIA's fiscal year ends", "NVDA fiscal year end 10-K",
                  "sec.example/nvda/10-k",
                  "Fiscal year 2025 ended on January 26, 2025, the last Sunday of January",
                  "NVDA fiscal year 2025 ended January 26, 2025"),
            _lead("Find data centre revenue of the last fiscal year", "NVDA fiscal 2025 data center revenue",
                  "ir.example/nvda/fy25", "Data centre revenue of $115.2 billion in fiscal 2025",
                  "NVDA fiscal 2025 data centre revenue was 115.2 billion USD"),
            _lead("Confirm the stock split of 2024", "NVDA stock split ten for one",
                  "ir.example/nvda/split", "Ten-for-one split, effective June 2024",
                  "NVDA split its stock ten for one in June 2024"),
            _lead("Check total revenue of fiscal 2025", "NVDA total revenue fiscal 2025 annual report",
                  "sec.example/nvda/10-k", "Total revenue of $130.5 billion, up 114 %",
                  "NVDA fiscal 2025 revenue was 130.5 billion USD"),
        ),
        "NVIDIA: the quarter is one line of the income statement",
    ),
    Company(
        "HLVR", "Helvar Robotics",
        "Service revenue hides in other income; the order book does not.",
        (
            _lead("Read Helvar's order book disclosure", "Helvar Robotics order backlog annual report",
                  "filings.example/hlvr/annual", "Backlog of 412 million euro, 61 % of it due within a year",
                  "Helvar order backlog was 412 million EUR"),
            _lead("Find Helvar's churn of service contracts", "Helvar service contract renewal rate",
                  "industry.example/robot-service", "Renewal rate of 93 % over eight quarters",
                  "Helvar service renewal rate was 93 percent"),
            _lead("Compare Helvar's gross margin with peers", "warehouse robot makers gross margin table",
                  "data.example/margins", "38.4 % against a peer median of 34.9 %",
                  "Helvar gross margin was 38.4 percent"),
        ),
        "Helvar Robotics: the service desk earns what the arms do not",
    ),
    Company(
        "ORTX", "Orteliux",
        "Three licences were renewed on one day; the cash came on another.",
        (
            _lead("Date the licence renewals of Orteliux", "Orteliux mapping licence renewal 2026",
                  "news.example/ortx-licence", "Three renewals signed on the last day of the quarter",
                  "Orteliux renewed three licences in the quarter"),
            _lead("Reconcile receivables with revenue", "Orteliux trade receivables note 14",
                  "filings.example/ortx/q3", "Receivables rose 31 %, revenue 9 %",
                  "Orteliux receivables rose 31 percent"),
            _lead("Ask what auditors changed", "Orteliux auditor key audit matters",
                  "filings.example/ortx/audit", "Revenue cut-off is a new key audit matter",
                  "Orteliux has a new key audit matter on revenue cut-off"),
            _lead("Check insider transactions", "Orteliux director dealings",
                  "regulator.example/dealings", "No sales by directors in the window",
                  "Orteliux directors sold no shares in the window"),
        ),
        "Orteliux: nine per cent growth, thirty-one of it unpaid",
    ),
    Company(
        "BRML", "Bremelle Foods",
        "Cocoa is hedged until March; the question is what happens in April.",
        (
            _lead("Find how far Bremelle has hedged cocoa", "Bremelle Foods cocoa hedge cover",
                  "filings.example/brml/interim", "Cover until the end of March at 7,900 a tonne",
                  "Bremelle cocoa cover ends March 31"),
            _lead("Read retail price moves", "supermarket chocolate shelf prices index",
                  "prices.example/chocolate", "Shelf prices up 11 % in twelve months",
                  "Chocolate shelf prices rose 11 percent in a year"),
            _lead("Measure volumes lost", "Bremelle volume decline scanner data",
                  "scanner.example/brml", "Volumes down 4.2 %, the peer group 5.0 %",
                  "Bremelle volumes fell 4.2 percent"),
        ),
        "Bremelle: a hedge is a calendar, not a moat",
    ),
    Company(
        "KSTL", "Kastell Energie",
        "Curtailment is published late; battery dispatch shows it a week earlier.",
        (
            _lead("Read last month's battery dispatch", "Kastell battery dispatch hourly",
                  "grid.example/kstl/dispatch", "Evening discharge peaked at 412 MW",
                  "Kastell batteries peaked at 412 MW"),
            _lead("Check curtailment in the operator's filing", "Kastell curtailment filing october",
                  "regulator.example/kstl", "3.8 GWh curtailed in September",
                  "Kastell curtailed 3.8 GWh in September"),
            _lead("Find the strike price of the new contract", "Kastell contract for difference strike",
                  "gov.example/cfd", "Strike price of 74.20 a megawatt hour",
                  "Kastell contract strike price is 74.20 EUR"),
            _lead("Count days to the refinancing", "Kastell bond maturity schedule",
                  "bonds.example/kstl", "450 million due in eleven months",
                  "Kastell bond maturity is 450 million EUR"),
            _lead("Compare the capacity factor with plan", "Kastell wind capacity factor plan",
                  "grid.example/kstl/wind", "29.1 % against 31.5 % planned",
                  "Kastell wind capacity factor was 29.1 percent"),
        ),
        "Kastell: the batteries paid for the wind this autumn",
    ),
    Company(
        "VNTR", "Ventoris Air",
        "Load factors are fine; the leases are not.",
        (
            _lead("Find the lease reset dates", "Ventoris aircraft lease reset schedule",
                  "filings.example/vntr/leases", "Nine aircraft reset within six months",
                  "Ventoris has nine lease resets within six months"),
            _lead("Check the fuel assumption", "Ventoris fuel cost guidance",
                  "ir.example/vntr/q3", "Guidance assumes 780 a tonne; spot is 845",
                  "Ventoris fuel guidance is 780 USD a tonne"),
        ),
        "Ventoris: full planes, expensive ones",
    ),
    Company(
        "SLDN", "Solden Biotech",
        "The primary endpoint changed between registrations; both versions must be cited.",
        (
            _lead("Compare both registrations of trial SB-204", "SB-204 registry version history",
                  "registry.example/sb-204", "Primary endpoint moved from 12 to 24 weeks in version 3",
                  "Solden trial SB-204 changed its primary endpoint to 24 weeks"),
            _lead("Extract the drop-out table", "SB-204 supplementary table 6", "journal.example/sb204",
                  "Drop-out of 11 % against 9 % on placebo", "Solden trial drop-out was 11 percent"),
            _lead("Count quarters of cash", "Solden Biotech cash runway half-year report",
                  "filings.example/sldn/half-year", "Cash for nine quarters at the present burn",
                  "Solden cash runway is nine quarters"),
        ),
        "Solden: met an endpoint it did not start with",
    ),
    Company(
        "TRVN", "Travenna Logistics",
        "Rates hide what transit times show; start from vessel positions.",
        (
            _lead("How long do ships wait off Rotterdam?", "AIS anchorage dwell Rotterdam weekly",
                  "ais.example/rotterdam", "Median dwell of 31 h, up from 19 h in March",
                  "Rotterdam anchorage dwell was 31 hours"),
            _lead("Find Travenna's spot exposure", "Travenna contract spot split",
                  "filings.example/trvn/annual", "27 % of volumes at spot rates",
                  "Travenna spot share was 27 percent"),
            _lead("Sum cancelled sailings of the alliances", "blank sailings october alliances",
                  "alliances.example/notices", "41 of 612 sailings cancelled",
                  "41 of 612 October sailings were cancelled"),
            _lead("Measure demurrage complaints", "container demurrage complaints regulator",
                  "regulator.example/demurrage", "2,184 complaints, 63 % of them about two terminals",
                  "Demurrage complaints were 2184 in the quarter"),
        ),
        "Travenna: ships, not rates, say where the margin went",
    ),
)  # fmt: skip

NVDA, HELVAR = COMPANIES[0], COMPANIES[1]
FALSE_CLAIM = "NVDA fiscal year ends Dec 31"
TRUE_CLAIM = "NVDA's fiscal year ends on the last Sunday of January"
SHARES_A = "Helvar Robotics diluted share count is 48.2 million"
SHARES_B = "Helvar Robotics diluted share count is 51.7 million"

OBSTACLES = (
    "HTTP 503 from the source after three attempts",
    "Rate limit reached: 60 requests per minute",
    "The page is a consent wall; no text was extracted",
    "TLS handshake timed out after 10 s",
)
OBJECTIONS = (
    "The second paragraph states a figure without its source.",
    "The headline claims more than the findings carry.",
    "Two sentences repeat the same figure with different rounding.",
)
SNIPPETS = (
    ("Trust the search snippet", "Snippets are often a year old."),
    ("Cite the press release", "It rounds; the filing does not."),
    ("Ask the terminal's consensus field", "Consensus is what we are paid to doubt."),
)
METHODS = (
    ("discounted cash flow", "peer multiples", "No two peers have the same lease accounting."),
    ("sum of the parts", "one multiple for the group", "The parts grow at different speeds."),
    ("scenario table", "a point estimate", "The range is the message here."),
)
SECTIONS = ("Thesis", "Numbers", "What would change our mind", "Valuation", "Risks")
PLAN_STEPS = ("Facts first, opinion last.", "Questions that do not depend on each other go out at once.")
