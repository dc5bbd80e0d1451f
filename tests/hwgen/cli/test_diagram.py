"""``hwgen diagram``."""


def test_both_pictures_are_written(run, tmp_path):
    status, out, err = run("diagram", "--config", "nvfp4-blackwell", "--out", "there")
    assert (status, err) == (0, "")
    names = [f"nvfp4-blackwell-{kind}.svg" for kind in ("core", "datapath")]
    assert out.split() == [f"there/{name}" for name in names]
    for name in names:
        assert (tmp_path / "there" / name).read_text().startswith("<svg ")


def test_nothing_is_written_where_one_cannot_be(refused, tmp_path):
    (tmp_path / "nvfp4-small-datapath.svg").mkdir()
    assert "is a directory" in refused("diagram", "--config", "nvfp4-small")
