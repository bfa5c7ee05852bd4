"""Series: functions as sums of waves, fitted on an interval.

The numbers are constants, not computed here, because all parties must use exactly the same. They are made by
``python -m tests.syft_mpc.fit_series``; a test compares them with the functions.
"""

from __future__ import annotations

from typing import NamedTuple


class Series(NamedTuple):
    """constant + Σ cosines·cos(jθ) + sines·sin(jθ)  for  θ = 2π(x - middle) / period  and  low <= x <= high."""

    low: float
    high: float
    period: float
    middle: float
    constant: float
    odd: bool
    """Whether j takes odd values only."""
    cosines: tuple[float, ...] = ()
    """Empty if all are zero; likewise ``sines``."""
    sines: tuple[float, ...] = ()

    @property
    def waves(self) -> int:
        """The number of waves."""
        return max(len(self.cosines), len(self.sines))


def _billionths(text: str) -> tuple[float, ...]:
    return tuple(int(number) / 1e9 for number in text.split())


SERIES = {
    # error 5.1e-07; the coefficients add up to 1
    "sigmoid": Series(
        *(-14, 14, 56, 0.0, 0.000000000),
        odd=True,
        sines=_billionths(
            "623625572 177271364 79364038 38336015 18839636 9296647 4592261 2268905 1121142 553939 273748 135234 "
            "66851 33006 16334 8046 4002 1948 1000 426"
        ),
    ),
    # error 2.8e-07; the coefficients add up to 2
    "erf": Series(
        *(-3.6, 3.6, 15, 0.0, 0.000000000),
        odd=True,
        sines=_billionths("1218596228 285980407 85051682 21200594 4051298 573364 59094 4349"),
    ),
    # error 5.8e-08; the coefficients add up to 3
    "gelu": Series(
        *(-5.2, 5.2, 20.8, 0.0, 2.599999540),
        odd=True,
        cosines=_billionths("-2197217516 -282851686 -88408728 -25161437 -5421395 -839637 -91719 -7044 -351"),
    ),
    # error 2.3e-07; the coefficients add up to 3
    "gelu_tanh": Series(
        *(-5.2, 5.2, 20.8, 0.0, 2.600000002),
        odd=True,
        cosines=_billionths("-2197138073 -283061208 -88454386 -24981166 -5345241 -879774 -125851 -14688 -257 417"),
    ),
    # error 4.6e-07; the coefficients add up to 8
    "silu": Series(
        *(-17, 17, 64.6, 0.0, 8.074998185),
        odd=True,
        cosines=_billionths(
            "-6643925143 -803102983 -305862541 -150090225 -79096070 -42558997 -23039623 -12495314 -6780135 "
            "-3679708 -1997024 -1083923 -588238 -319305 -173264 -94067 -51032 -27713 -15032 -8161 -4433 -2397 "
            "-1314 -698 -383"
        ),
    ),
    # error 2.7e-07; the coefficients add up to 6
    "softplus": Series(
        *(-14, 14, 53.2, 0.0, 6.650001900),
        odd=True,
        cosines=_billionths(
            "-5268568133 -491046490 -128277834 -42795463 -15780155 -6141115 -2473681 -1020593 -428838 -182619 "
            "-78727 -34175 -15012 -6583 -2946 -1290 -594 -247"
        ),
    ),
    # error 9.8e-08; the coefficients add up to 1
    "gelu_slope": Series(
        *(-5.6, 5.6, 23.1, 0.0, 0.000000000),
        odd=True,
        sines=_billionths("658889282 253400466 143899413 68661072 24716551 6553785 1274471 181863 19075 1461"),
    ),
    # error 5.1e-07; the coefficients add up to 1
    "gelu_tanh_slope": Series(
        *(-5.6, 5.6, 23.1, 0.0, 0.000000000),
        odd=True,
        sines=_billionths(
            "658866259 253537773 144051859 68420778 24389484 6536136 1425054 277456 41612 499 -2360 -997"
        ),
    ),
    # error 6.5e-07; the coefficients add up to 1
    "silu_slope": Series(
        *(-17, 17, 66, 0.0, 0.000000000),
        odd=True,
        sines=_billionths(
            "645817829 233673088 148621208 102850105 70423270 46871932 30368437 19249307 11991589 7368441 4477607 "
            "2696413 1611403 956918 565066 332148 194379 113369 65886 38184 22079 12716 7341 4183 2440 1343 838 "
            "363"
        ),
    ),
    # error 5.9e-07; the coefficients add up to 16
    "reciprocal": Series(
        *(1, 16, 20, 8.5, 0.467805790),
        odd=False,
        cosines=_billionths(
            "-564668233 290417961 -19602081 -225126021 420788579 -553462683 619869600 -626039897 584488532 "
            "-510880386 420949947 -328183512 242490389 -169835710 112626659 -70555994 41605895 -22977093 11800553 "
            "-5581657 2398576 -918001 303477 -82299 16554 -1895"
        ),
        sines=_billionths(
            "-619892286 959824362 -1166423317 1250007143 -1228339347 1126651091 -973449229 796163708 -617804323 "
            "455061321 -317848481 210000201 -130688165 76106450 -41053946 20175699 -8766052 3152962 -756549 "
            "-56578 209310 -155633 78972 -30013 8162 -1269"
        ),
    ),
    # error 8.6e-08; the coefficients add up to 12
    "sqrt": Series(
        *(1, 16, 22.5, 8.5, 1.817303307),
        odd=False,
        cosines=_billionths(
            "1925426895 -1483386347 1159137950 -868720384 615883504 -410256676 255357955 -147620313 78662005 "
            "-38253498 16745495 -6469380 2140236 -576534 114716 -13069"
        ),
        sines=_billionths(
            "1474460808 -943019739 706262603 -536029107 393394123 -273454471 177905638 -107342269 59520244 "
            "-30002403 13552619 -5375893 1815685 -495975 99202 -11211"
        ),
    ),
    # error 3.1e-07; the coefficients add up to 33
    "rsqrt": Series(
        *(1, 16, 22.5, 8.5, 0.959307503),
        odd=False,
        cosines=_billionths(
            "-974792552 411036427 193337531 -724961758 1092039935 -1256061235 1232128751 -1072312973 842599039 "
            "-602548645 393122716 -233705084 126005678 -61106513 26310104 -9860063 3117561 -788927 144262 -14621"
        ),
        sines=_billionths(
            "-1671281690 2765495543 -3414908657 3595396069 -3375696901 2883300998 -2262384035 1638163974 "
            "-1096001494 676731389 -384339530 199644194 -94059518 39713483 -14769424 4716134 -1242502 252372 "
            "-34579 2250"
        ),
    ),
    # error 2.3e-07; the coefficients add up to 77
    "log": Series(
        *(1, 16, 22.5, 8.5, -4.895309157),
        odd=False,
        cosines=_billionths(
            "13298578399 -11614248305 9675495348 -7618640174 5654366630 -3946774665 2584168552 -1581747186 "
            "901009836 -474792137 229619385 -100830119 39610689 -13627878 3975354 -931795 158296 -14938"
        ),
        sines=_billionths(
            "2206912895 -2653050543 2868893081 -2785317449 2459157069 -1991296292 1485350191 -1021961218 "
            "647794677 -376972321 200181974 -96117577 41171182 -15420714 4896155 -1250838 232438 -24169"
        ),
    ),
    "sin": Series(0, 0, 6.283185307179586, 0, 0, odd=True, sines=(1.0,)),
    "cos": Series(0, 0, 6.283185307179586, 0, 0, odd=True, cosines=(1.0,)),
}
"""By the name of the function. Of sigmoid and the slopes 1/2 is subtracted; of gelu, silu and softplus x/2. The last of
the fitted ones, from reciprocal on, have relative errors, except log."""
