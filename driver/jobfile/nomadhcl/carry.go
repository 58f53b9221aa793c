package nomadhcl

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"pitchpipe/driver/jobfile"
)

// Carried is a job file as a Nomad agent parses it.
type Carried struct {
	Source []byte      // the tuning block stands in the scaling policy of its group
	Group  string      // that group's name; empty = there was no block to carry
	At     jobfile.Pos // where the block stands in the user's file

	filename string
	user     []byte
	edits    []edit // in the order of their places
}

// edit replaces bytes of the user's file. Its text may hold bytes of another place:
// those of the block that was cut there.
type edit struct {
	start, end int // in the user's file
	parts      []part
}

// part is text of ours or, where from is not negative, bytes of the user's file.
type part struct {
	text string
	from int
}

func ours(text string) part { return part{text: text, from: -1} }

// Carry moves the tuning block of the job or of a group, which Nomad does not know,
// into the group's scaling policy, the one place of a job that takes any block and
// whose change restarts nothing:
//
//	scaling {
//	  enabled = false # the cluster's autoscaler leaves it alone
//	  min     = count
//	  max     = count
//	  policy {
//	    tuning { ... }
//	  }
//	}
//
// A scaling block that is there already stays as it is and takes the tuning block into
// its policy. Every other byte of the file stays too, so that variables, functions and
// comments mean what they meant; the text is cut by the places of the syntax tree and
// not written anew, since only so each place that the agent complains of is known in
// the user's file (Faults). The error, if any, is of type jobfile.Errors.
func Carry(filename string, src []byte) (Carried, error) {
	p := &parser{filename: filename, src: src, job: &jobfile.Job{}}
	c := Carried{Source: src, filename: filename, user: src}
	if body, ok := p.syntax(); ok {
		if block, group := p.found(body); group != nil && len(p.errs) == 0 {
			c.Group, c.At = name(group), p.pos(block.TypeRange)
			c.edits = p.move(block, group)
		}
	}
	if err := p.errs.Err(); err != nil {
		return Carried{}, err
	}
	c.Source = c.apply()
	return c, nil
}

func name(b *hclsyntax.Block) string {
	if len(b.Labels) == 0 {
		return ""
	}
	return b.Labels[0]
}

// found returns the tuning block and the group that it is for.
func (p *parser) found(file *hclsyntax.Body) (block, group *hclsyntax.Block) {
	for _, job := range blocksOf(file, "job") {
		groups := blocksOf(job.Body, "group")
		for _, b := range blocksOf(job.Body, "tuning") {
			if !p.claim(p.pos(b.TypeRange)) {
				continue
			}
			block = b
			switch generated := dynamic(job.Body, "group"); {
			case generated != nil:
				p.fail(p.pos(b.TypeRange), "a tuning block of a job whose groups are generated",
					"want it in a group that is written out")
			case len(groups) == 1:
				group = groups[0]
			default:
				p.fail(p.pos(b.TypeRange), fmt.Sprintf("a tuning block of a job of %d groups", len(groups)),
					"want it in the group that it is meant for")
			}
		}
		for _, g := range groups {
			for _, b := range blocksOf(g.Body, "tuning") {
				if p.claim(p.pos(b.TypeRange)) {
					block, group = b, g
				}
			}
		}
	}
	return block, group
}

func blocksOf(body *hclsyntax.Body, kind string) []*hclsyntax.Block {
	var out []*hclsyntax.Block
	for _, b := range body.Blocks {
		if b.Type == kind {
			out = append(out, b)
		}
	}
	return out
}

// dynamic returns the block that generates blocks of a kind.
func dynamic(body *hclsyntax.Body, kind string) *hclsyntax.Block {
	for _, b := range blocksOf(body, "dynamic") {
		if name(b) == kind {
			return b
		}
	}
	return nil
}

// move cuts the block and puts it into the group's scaling policy.
func (p *parser) move(block, group *hclsyntax.Block) []edit {
	from, to := block.TypeRange.Start.Byte, block.CloseBraceRange.End.Byte
	whole := part{text: string(p.src[from:to]), from: from}
	cut := edit{start: from, end: to}
	if b := dynamic(group.Body, "scaling"); b != nil {
		p.fail(p.pos(b.TypeRange), "a scaling block that is generated", "want it written out: the tuning stanza is carried in its policy")
		return nil
	}
	scalings := blocksOf(group.Body, "scaling")
	if len(scalings) > 1 {
		p.fail(p.pos(scalings[1].TypeRange), "a second scaling block in the group",
			fmt.Sprintf("want one; the first is at %s", p.pos(scalings[0].TypeRange)))
		return nil
	}
	if len(scalings) == 0 {
		return p.ownScaling(cut, whole, block, group)
	}
	inside, policy := p.policyOf(scalings[0])
	if inside == nil {
		return nil
	}
	in := p.indent(inside.OpenBraceRange.Start.Byte) + "  "
	parts := []part{whole}
	if !policy {
		parts = []part{ours("policy {\n" + in + "  "), whole, ours("\n" + in + "}")}
	}
	return sorted(append(p.into(inside, in, parts), cut))
}

// ownScaling makes the scaling block: where the tuning block stood, or at the head of
// the group.
func (p *parser) ownScaling(cut edit, whole part, block, group *hclsyntax.Block) []edit {
	count := "1"
	if a, ok := group.Body.Attributes["count"]; ok {
		count = p.text(a.Expr.Range())
	}
	in := p.indent(group.OpenBraceRange.Start.Byte) + "  "
	head := fmt.Sprintf("scaling {\n%[1]s  enabled = false\n%[1]s  min     = %[2]s\n%[1]s  max     = %[2]s\n%[1]s  policy {\n%[1]s    ", in, count)
	parts := []part{ours(head), whole, ours("\n" + in + "  }\n" + in + "}")}
	if slices.Contains(group.Body.Blocks, block) {
		cut.parts = parts
		return []edit{cut}
	}
	at := group.OpenBraceRange.End.Byte
	parts = append([]part{ours("\n" + in)}, parts...)
	if rest := bytes.TrimLeft(p.src[at:], " \t"); len(rest) > 0 && !strings.ContainsRune("\r\n#/", rune(rest[0])) {
		parts = append(parts, ours("\n"))
	}
	return sorted([]edit{cut, {start: at, end: at, parts: parts}})
}

// policyOf returns the body that the tuning block belongs into: the policy of a
// scaling block, or the scaling block itself where it has none; nil where neither can
// take it.
func (p *parser) policyOf(scaling *hclsyntax.Block) (body *hclsyntax.Block, policy bool) {
	const want = "want a policy block that is written out, or none: the tuning stanza is carried in it"
	if a, ok := scaling.Body.Attributes["policy"]; ok {
		p.fail(p.pos(a.NameRange), "a scaling policy that is not a block", want)
		return nil, false
	}
	if b := dynamic(scaling.Body, "policy"); b != nil {
		p.fail(p.pos(b.TypeRange), "a scaling policy that is generated", want)
		return nil, false
	}
	policies := blocksOf(scaling.Body, "policy")
	switch len(policies) {
	case 0:
		return scaling, false
	case 1:
	default:
		p.fail(p.pos(policies[1].TypeRange), "a second policy in the scaling block", "want one")
		return nil, false
	}
	inside := policies[0].Body
	if a, ok := inside.Attributes["tuning"]; ok {
		p.claim(p.pos(a.NameRange))
	}
	for _, b := range blocksOf(inside, "tuning") {
		p.claim(p.pos(b.TypeRange))
	}
	if b := dynamic(inside, "tuning"); b != nil {
		p.claim(p.pos(b.TypeRange))
	}
	return policies[0], true
}

// into puts text at the end of a block. A block that is written on one line is broken
// into several, since the language allows no inner block there.
func (p *parser) into(b *hclsyntax.Block, in string, parts []part) []edit {
	open, end := b.OpenBraceRange.End.Byte, b.CloseBraceRange.Start.Byte
	outer := strings.TrimSuffix(in, "  ")
	if bytes.IndexByte(p.src[open:end], '\n') < 0 {
		if len(bytes.TrimSpace(p.src[open:end])) == 0 {
			return []edit{{start: end, end: end, parts: framed("\n"+in, parts, "\n"+outer)}}
		}
		return []edit{
			{start: open, end: open, parts: []part{ours("\n" + in)}},
			{start: end, end: end, parts: framed("\n"+in, parts, "\n"+outer)},
		}
	}
	return []edit{{start: end, end: end, parts: framed("  ", parts, "\n"+outer)}}
}

func framed(before string, parts []part, after string) []part {
	return append(append([]part{ours(before)}, parts...), ours(after))
}

// indent is the white space that the line of a byte begins with.
func (p *parser) indent(at int) string {
	line := p.src[bytes.LastIndexByte(p.src[:at], '\n')+1 : at]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

func sorted(edits []edit) []edit {
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(a.start, b.start) })
	return edits
}

func (c Carried) apply() []byte {
	var out bytes.Buffer
	at := 0
	for _, e := range c.edits {
		out.Write(c.user[at:e.start])
		for _, p := range e.parts {
			out.WriteString(p.text)
		}
		at = e.end
	}
	out.Write(c.user[at:])
	return out.Bytes()
}

// origin turns a byte of Source into one of the user's file; what is ours is where the
// tuning block stood.
func (c Carried) origin(at int) int {
	user, carried := 0, 0 // both in front of the next edit
	for _, e := range c.edits {
		if same := e.start - user; at < carried+same {
			return user + at - carried
		}
		carried += e.start - user
		for _, p := range e.parts {
			if at < carried+len(p.text) {
				if p.from < 0 {
					return c.block()
				}
				return p.from + at - carried
			}
			carried += len(p.text)
		}
		user = e.end
	}
	return min(user+at-carried, len(c.user))
}

// block is the byte at which the tuning block began.
func (c Carried) block() int { return offset(c.user, c.At.Line, c.At.Column) }

// offset is the byte at a line and a column, the last of the text where there is none.
func offset(src []byte, line, column int) int {
	at := 0
	for n := 1; n < line; n++ {
		i := bytes.IndexByte(src[at:], '\n')
		if i < 0 {
			return len(src)
		}
		at += i + 1
	}
	return min(at+max(column, 1)-1, len(src))
}

// place is the line and column of a byte.
func place(filename string, src []byte, at int) jobfile.Pos {
	before := src[:min(at, len(src))]
	return jobfile.Pos{
		Filename: filename,
		Line:     bytes.Count(before, []byte("\n")) + 1,
		Column:   len(before) - bytes.LastIndexByte(before, '\n'),
	}
}
