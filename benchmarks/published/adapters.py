"""The repositories whose learners are attacked, with an adapter for each.

None of their code is here: an adapter takes the path of a checkout, and imports from it. A process serves one checkout,
because the repositories share names of modules.
"""

from benchmarks.published.arms import differentially_private_bandits, dp_ncb, private_bandits
from benchmarks.published.cases import Repository
from benchmarks.published.contexts import fliphat, ldp_bandit, ldp_bandit_2020

REPOSITORIES = {
    "keirp/private-bandits": Repository(
        "https://github.com/keirp/private-bandits",
        "e666280",
        "dffb31567a691410",
        ("private_bandits/**/*.py",),
        private_bandits,
    ),
    "liangzp/LDP-Bandit": Repository(
        "https://github.com/liangzp/LDP-Bandit",
        "62d9093",
        "0cce641f1355da70",
        ("Scheme2/servers/*.py", "Scheme2/mechanisms/*.py"),
        ldp_bandit,
    ),
    "MIFA-Lab/LDPbandit2020": Repository(
        "https://github.com/MIFA-Lab/LDPbandit2020", "54f0c05", "be7a734b02dc5594", ("src/*.py",), ldp_bandit_2020
    ),
    "NP-Hardest/DP-NCB": Repository(
        "https://github.com/NP-Hardest/DP-NCB", "4839751", "301f59c779b4ddf2", ("algorithms/*.py",), dp_ncb
    ),
    "sayakrc/Differentially-Private-Bandits": Repository(
        "https://github.com/sayakrc/Differentially-Private-Bandits",
        "ea7503b",
        "21912a5975ae1426",
        ("*.py",),
        differentially_private_bandits,
    ),
    "sunritc/FLIPHAT": Repository(
        "https://github.com/sunritc/FLIPHAT", "4b696b7", "2d9538252c8b4fd9", ("SparseBandit/*.py",), fliphat
    ),
}
