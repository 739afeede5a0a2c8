"""Four analyses of Adult from replicates, with statsmodels, which is no dependency of Likeness.

Run, beside the bundle ``adult.zip`` and its ``synthetic.csv``::

    likeness sample adult.zip --replicates 20 --out r.csv
    python analyses.py

Each analysis is a function from a table to estimates and their squared standard errors. It pools them by
:func:`likeness.combine`: ``r_0.csv`` is the base, ``synthetic.csv`` the table.
"""

import pandas as pd
import statsmodels.formula.api as smf

import likeness

REPLICATES = 20


def _of_model(fit):
    return fit.params, fit.bse**2


def logistic_regression(rows):
    """Coefficients of the odds of a high income."""
    return _of_model(smf.logit("rich ~ age + sex", rows.assign(rich=1 * (rows.income == ">50K"))).fit(disp=0))


def least_squares(rows):
    """Coefficients of the hours of work."""
    return _of_model(smf.ols('Q("hours-per-week") ~ age + sex', rows).fit())


def median(rows):
    """The median age, with the standard error of a quantile regression without regressors."""
    return _of_model(smf.quantreg("age ~ 1", rows).fit(q=0.5))


def difference_of_means(rows):
    """The mean hours of men less those of women."""
    hours = rows.groupby("sex", observed=True)["hours-per-week"].agg(["mean", "var", "size"])
    men, women = hours.loc["Male"], hours.loc["Female"]
    return men["mean"] - women["mean"], men["var"] / men["size"] + women["var"] / women["size"]


if __name__ == "__main__":
    table, base = pd.read_csv("synthetic.csv"), pd.read_csv("r_0.csv")
    replicates = [pd.read_csv(f"r_{number}.csv") for number in range(1, REPLICATES + 1)]
    for analysis in (logistic_regression, least_squares, median, difference_of_means):
        estimates, variances = zip(*map(analysis, replicates), strict=True)
        corrected = {"base": analysis(base)[0], "table": analysis(table)[0]}
        print(f"{analysis.__name__}\n{likeness.combine(estimates, variances, **corrected).round(4)}\n")
