"""The sentences that the accuracy of a trained encoder is measured on."""

SENTENCES = (
    "The harbour was quiet, and only a single lamp burned at the end of the pier.",
    "At the end of the jetty one light was still on; the port lay silent.",
    "Please send me the invoice before Friday so that I can pay it on time.",
    "How do I undo the last commit without losing my changes?",
    "A matrix multiplication of two small tiles takes one cycle on this unit.",
    "The doctor told her to rest for two weeks and to drink plenty of water.",
    "Inflation fell to 2.4% in March, the lowest figure in three years.",
    "Prices rose more slowly this spring than at any time since 2021.",
    "My grandmother bakes bread every Sunday with flour from the old mill.",
    "Why does the moon look larger when it is close to the horizon?",
    "He missed the train by a minute and had to wait until midnight.",
    "The committee rejected the proposal because its budget was unclear.",
    "Young foxes leave the den in late summer and look for a territory of their own.",
    "This phone's battery lasts two days, but the camera is disappointing.",
    "I would not buy these headphones again: they broke after a month.",
    "Add the onions, fry them gently, and stir in the rice once they are soft.",
    "The treaty was signed in 1648 and ended thirty years of war.",
    "Rounding to nearest even avoids the drift that always rounding up would cause.",
    "She laughed.",
    "When the river froze, the children skated to school, and the ferryman, who had nothing to do until spring,"
    " mended his nets, painted his boat and told anyone who would listen how much colder the winters used to be.",
)
"""Twenty, written for this purpose: news, letters, questions, instructions, reviews; two pairs that mean the same."""
