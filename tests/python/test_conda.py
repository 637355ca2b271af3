# SPDX-License-Identifier: Apache-2.0
"""deploy/conda: rattler-build reads the recipe."""

import pathlib

import rattler_build

RECIPE = pathlib.Path(__file__).parents[2] / "deploy" / "conda" / "recipe.yaml"


def test_the_recipe_packs_the_wheel_of_a_version(monkeypatch):
    monkeypatch.setenv("KERNIX_VERSION", "1.2.3")
    (variant,) = rattler_build.Stage0Recipe.from_file(str(RECIPE)).render()
    recipe = variant.recipe.to_dict()
    assert recipe["package"] == {"name": "kernix", "version": "1.2.3"}
    assert recipe["source"][0]["filter"] == ["kernix-1.2.3-*.whl"]
    assert recipe["requirements"]["run"] == ["python >=3.11", "__glibc >=2.28"]
    assert (RECIPE.parent / recipe["source"][1]["path"]).name == "LICENSE"
    assert recipe["about"]["license_file"] == ["LICENSE"]
