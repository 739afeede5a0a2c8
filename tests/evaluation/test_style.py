from likeness.report.style import cut, draw, label


def test_only_secret_figures_are_padded() -> None:
    public = [draw(1, 1, lambda figure: None, secret=False) for _ in range(2)]
    secret = [draw(1, 1, lambda figure: None, secret=True) for _ in range(2)]
    assert public[0] == public[1] and len(public[0]) < 1 << 16 and b"Salt" not in public[0]
    assert secret[0] != secret[1] and len(secret[0]) == len(secret[1]) == 1 << 16


def test_names_for_people() -> None:
    assert label("roc_auc_hard") == "ROC AUC, hard"
    assert label("random_forest") == "random forest"
    assert cut("abcdef", 4) == "abc…" and cut("abcd", 4) == "abcd"
