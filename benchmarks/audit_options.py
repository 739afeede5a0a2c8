"""What is off as shipped and audited all the same: settings of a method with an option, as the audit asks them."""

from collections.abc import Callable, Mapping
from typing import Any


def with_modes(section: Mapping[str, Any]) -> dict[str, Any]:
    """PEARL's section with a mixture of two steps, paid for by the embedding."""
    shares = {**section["plan"]["shares"], "mixture": 0.1}
    shares["embedding"] = 1 - shares["class_counts"] - shares["mean_pairwise_distance"] - shares["mixture"]
    mixture = {"components": 3, "iterations": 2, "columns": None}
    return {**section, "plan": {"shares": shares}, "auxiliary": {**section["auxiliary"], "mixture": mixture}}


def with_quantiles(section: Mapping[str, Any]) -> dict[str, Any]:
    """Section of ``marginals`` with bins between private quantiles of one number, paid for by the embedding.

    They are few, so that noise does not hide the quantiles of few rows.
    """
    shares = {**section["plan"]["shares"], "quantiles": 0.1}
    shares["embedding"] = 1 - shares["class_counts"] - shares["quantiles"]
    quantiles, privatize = {"columns": ["a"], "cells": 16, "edges": "learned"}, {**section["privatize"], "bins": 4}
    return {**section, "plan": {"shares": shares}, "auxiliary": {"quantiles": quantiles}, "privatize": privatize}


def with_tables(section: Mapping[str, Any]) -> dict[str, Any]:
    """Section of ``marginals`` with a table of three columns beside the pairs, and a column that matters more."""
    workload = [{"columns": ["a"], "weight": 2}, {"columns": ["a", "b", "c"]}]
    return {**section, "privatize": {**section["privatize"], "workload": workload}}


def with_first_look(section: Mapping[str, Any]) -> dict[str, Any]:
    """Section of ``marginals`` with a first look at the pairs, which weighs the rest."""
    return {**section, "privatize": {**section["privatize"], "first_share": 0.2}}


def with_contrasts(section: Mapping[str, Any]) -> dict[str, Any]:
    """Section of ``marginals`` with interactions apart from single columns."""
    return {**section, "privatize": {**section["privatize"], "basis": "contrasts", "bins": 5}}


def with_fourier(section: Mapping[str, Any]) -> dict[str, Any]:
    """Section of ``moments`` with features for a network beside, paid for by the embedding."""
    shares = {**section["plan"]["shares"], "fourier": 0.1}
    shares["embedding"] -= shares["fourier"]
    fourier = {**section["auxiliary"]["fourier"], "num_frequencies": 20}
    return {**section, "plan": {"shares": shares}, "auxiliary": {**section["auxiliary"], "fourier": fourier}}


def with_clusters(section: Mapping[str, Any]) -> dict[str, Any]:
    """Section of ``moments`` with classes that split where noise allows."""
    return {**section, "auxiliary": {**section["auxiliary"], "splits": 2}}


def with_gray(section: Mapping[str, Any]) -> dict[str, Any]:
    """Section of ``moments`` for photographs, which are measured from gray."""
    return {**section, "auxiliary": {**section["auxiliary"], "center": "gray"}}


def with_centers(section: Mapping[str, Any]) -> dict[str, Any]:
    """Section of ``moments`` whose images are measured from the released mean of their class."""
    return {**section, "auxiliary": {**section["auxiliary"], "center": "classes", "splits": 1}}


def with_moments(section: Mapping[str, Any]) -> dict[str, Any]:
    """Section of ``merf_ae`` with moments of short codes."""
    return {**section, "privatize": {**section["privatize"], "features": "moments", "code": 12}}


def with_convolution(section: Mapping[str, Any]) -> dict[str, Any]:
    """Section of ``ntk`` with a network that sees images as pictures."""
    return {**section, "privatize": {**section["privatize"], "architecture": "cnn_2l", "widths": [4, 8]}}


# Of what is off as shipped: method, name, what it makes of the method's section.
OPTIONS: tuple[tuple[str, str, Callable[[Mapping[str, Any]], dict[str, Any]]], ...] = (
    ("pearl", "modes", with_modes),
    ("marginals", "quantiles", with_quantiles),
    ("marginals", "tables", with_tables),
    ("marginals", "first_look", with_first_look),
    ("marginals", "contrasts", with_contrasts),
    ("moments", "fourier", with_fourier),
    ("moments", "clusters", with_clusters),
    ("moments", "gray", with_gray),
    ("moments", "centers", with_centers),
    ("merf_ae", "moments", with_moments),
)

# Of images in color: method, what it makes of the method's section.
IN_COLOR: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "moments": with_fourier,
    "merf_ae": with_moments,
    "ntk": with_convolution,
}
