from likeness.evaluation.style import cut, label, salt


def test_salts_differ_in_content_and_length() -> None:
    salts = [salt() for _ in range(64)]
    assert len(set(salts)) == 64 and min(map(len, salts)) >= 64
    assert len({len(text) for text in salts}) > 8  # one of 256 lengths each: fewer than 9 has chance below 1e-50


def test_names_for_people() -> None:
    assert label("roc_auc_hard") == "ROC AUC, hard"
    assert label("random_forest") == "random forest"
    assert cut("abcdef", 4) == "abc…" and cut("abcd", 4) == "abcd"
