"""What the simulated agents talk about. Texts only; all companies but the brief's own are invented."""

from typing import NamedTuple


class Lead(NamedTuple):
    """One question a researcher follows, and what comes of it."""

    question: str
    query: str
    source: str
    finding: str
    fact: str


class Topic(NamedTuple):
    title: str
    angle: str
    leads: tuple[Lead, ...]
    headline: str


TOPICS = (
    Topic(
        "Quarterly earnings brief: NVDA",
        "Readers will compare fiscal years, so the year-end date matters more than the headline figure.",
        (
            Lead("Verify quarterly revenue for NVDA", "NVDA 10-K revenue 2023", "https://www.sec.gov/edgar",
                 "Retrieved 10-K; revenue confirmed at $26.97B", "NVDA FY2023 revenue was $26.97B"),
            Lead("Resolve the fiscal year end of NVDA", "NVDA fiscal year end date", "https://www.sec.gov/edgar",
                 "Cover page of the 10-K names January 29, 2023", "NVDA fiscal year 2023 ended Jan 29"),
            Lead("Find how much of the revenue is data centre", "NVDA data center segment revenue 10-K",
                 "https://www.sec.gov/edgar", "Segment note lists data centre at $15.01B",
                 "NVDA data centre revenue FY2023 was $15.01B"),
        ),
        "Data centre is now more than half of NVDA's revenue",
    ),
    Topic(
        "Port congestion watch: Northwind Cargo",
        "The delay is visible in berth times before it is visible in prices.",
        (
            Lead("Measure the median berth time in Rotterdam this week", "berth time rotterdam week 41",
                 "https://data.northwind.example/berths", "Median berth time 31 h, up from 22 h",
                 "Rotterdam berth time rose to 31 h"),
            Lead("Check whether Northwind rerouted vessels", "northwind cargo rerouting notice",
                 "https://northwind.example/notices", "Two strings rerouted to Antwerp until further notice",
                 "Northwind rerouted two strings to Antwerp"),
            Lead("Compare spot rates Asia to North Europe", "spot rate shanghai rotterdam 40ft",
                 "https://rates.example/index", "Spot rate flat at $3,140 per 40 ft container",
                 "Asia to North Europe spot rate is $3,140"),
            Lead("Ask the harbour feed for strike notices", "rotterdam terminal strike announcement",
                 "https://harbour.example/feed", "No strike announced; crane maintenance on two berths",
                 "Two Rotterdam berths are under crane maintenance"),
        ),
        "Berths, not rates: where this autumn's delay hides",
    ),
    Topic(
        "Grid resilience note: Arcadia Energy",
        "Curtailment numbers are published late; battery dispatch tells the same story a week earlier.",
        (
            Lead("Read last week's battery dispatch of Arcadia", "arcadia battery dispatch hourly",
                 "https://open.arcadia.example/dispatch", "Evening discharge peaked at 412 MW on Tuesday",
                 "Arcadia batteries peaked at 412 MW"),
            Lead("Check curtailment against the operator's filing", "arcadia curtailment filing october",
                 "https://regulator.example/filings", "Filing reports 3.8 GWh curtailed in September",
                 "Arcadia curtailed 3.8 GWh in September"),
        ),
        "Arcadia's batteries took the evening peak three days out of five",
    ),
    Topic(
        "Dependency advisory: libpaxos 4.2",
        "An advisory without a reproduction is noise; find the commit or say that there is none.",
        (
            Lead("Find the commit that fixed the snapshot overflow", "libpaxos snapshot length overflow fix",
                 "https://git.example/libpaxos/commits", "Fixed in 9f31c2e, first released in 4.2.3",
                 "libpaxos before 4.2.3 can overflow a snapshot length"),
            Lead("List services that still pin 4.2.1", "internal sbom libpaxos==4.2.1",
                 "https://sbom.example/query", "Three services pin 4.2.1: ledger-sync, quorum-api, replay",
                 "ledger-sync, quorum-api and replay pin libpaxos 4.2.1"),
            Lead("Reproduce the overflow in a sandbox", "fuzz snapshot reader 4.2.1",
                 "https://sandbox.example/runs/881", "Aborts on a 2 GiB length field; no code runs",
                 "The libpaxos overflow aborts the process, nothing more"),
        ),
        "Upgrade to libpaxos 4.2.3: an abort, not a break-in",
    ),
    Topic(
        "Clinical summary: trial HX-204",
        "The primary endpoint changed between registrations; both versions must be cited.",
        (
            Lead("Compare both registrations of HX-204", "HX-204 registry version history",
                 "https://registry.example/HX-204", "Primary endpoint moved from 12 to 24 weeks in version 3",
                 "HX-204 changed its primary endpoint to 24 weeks"),
            Lead("Extract the drop-out table", "HX-204 supplementary table 6",
                 "https://journal.example/hx204/suppl", "Drop-out 11 % treatment, 9 % placebo",
                 "HX-204 drop-out was 11 % against 9 %"),
            Lead("Check the sample size calculation", "HX-204 protocol power calculation",
                 "https://registry.example/HX-204/protocol", "Powered for 412 participants; 398 enrolled",
                 "HX-204 enrolled 398 of 412 planned participants"),
        ),
        "HX-204 met an endpoint it did not start with",
    ),
)  # fmt: skip

OBSTACLES = (
    "HTTP 503 from the source after three attempts",
    "Rate limit reached: 60 requests per minute",
    "The page is a consent wall; no text was extracted",
    "TLS handshake timed out after 10 s",
)
OBJECTIONS = (
    "The second paragraph states a figure without its source.",
    "The headline claims more than the findings carry.",
    "Two sentences repeat the same fact with different rounding.",
)
STUCK = (
    ("Open the quarterly filing behind the login page", "browser_open",
     {"url": "https://filings.example/login?next=/q3"}, "Redirected to the login page again"),
    ("Wait until the export job is done", "poll_job", {"job": "export-7741"}, "Job state: queued"),
    ("Click the cookie banner away", "browser_click", {"selector": "#accept-all"}, "Element not clickable"),
)  # fmt: skip
