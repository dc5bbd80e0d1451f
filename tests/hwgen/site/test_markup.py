from hwgen.site.markup import Markup, rows, tag, together


def test_text_is_escaped_and_markup_is_not(evil):
    inner = tag("b", evil)
    assert inner == "<b>&lt;img src=x onerror=alert(1)&gt;&quot;&#x27;&amp;&lt;/script&gt;$</b>"
    assert tag("p", inner, None, 3) == f"<p>{inner}3</p>"
    assert together("<", Markup("<")) == "&lt;<"


def test_attributes():
    assert tag("a", class_="x", data_y='"<', hidden=True, open=False, title=None) == (
        '<a class="x" data-y="&quot;&lt;" hidden></a>'
    )
    assert tag("input", value=0) == '<input value="0">'


def test_a_table_scrolls_by_itself_and_can_be_reached_by_keyboard(parsed):
    found = parsed(rows(["a", "b"], [["x", "1"], ["<y>", "2"]], "what <it> is", 1))
    assert found.table("what <it> is") == [["a", "b"], ["x", "1"], ["<y>", "2"]]
    around = found.elements[0][1]
    assert (around["tabindex"], around["role"]) == ("0", "region")
    assert [attributes for name, attributes in found.elements if name == "td"] == [{"class": "number"}] * 2
