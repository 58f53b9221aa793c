package nomadhcl

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"pitchpipe/driver/jobfile"
)

// level is what one kind of block may hold where the local scheduler runs the job as
// its author wrote it.
type level struct {
	name    string
	keys    map[string]kind
	blocks  map[string]level // of these there is one at most
	ignored string           // keys and blocks that change nothing here
	entries bool             // any key, whose value is a text
	named   bool             // it has one label, and there may be several
	need    []string         // what must be there
}

// kind is what the value of a key has to be.
type kind struct {
	is   cty.Type
	want string
	fits func(cty.Value) bool // nil: any value of the type
}

func text(want string, texts ...string) kind {
	return kind{cty.String, want, func(v cty.Value) bool { return len(texts) == 0 || slices.Contains(texts, v.AsString()) }}
}

func integer(low, high int64) kind {
	return kind{cty.Number, fmt.Sprintf("want a whole number from %d to %d", low, high), func(v cty.Value) bool {
		n, accuracy := v.AsBigFloat().Int64()
		return accuracy == 0 && n >= low && n <= high
	}}
}

// outermost is the file; what is in a job is judged when its variables are known.
func outermost() level {
	return level{
		name: "file", ignored: "locals job",
		blocks: map[string]level{"variable": {name: "variable", ignored: "type default description", named: true}},
	}
}

func localJob() level {
	const largest = 1 << 40 // MiB
	word := text("want a text in quotes")
	words := kind{cty.Map(cty.String), `want a map such as { NAME = "value" }`, nil}
	meta := level{name: "meta", entries: true}
	return level{
		name:    "job",
		ignored: "datacenters region priority node_pool all_at_once id constraint affinity spread reschedule update migrate restart ui tuning",
		keys:    map[string]kind{"name": word, "namespace": word, "meta": words, "type": text(`want "batch"`, "batch")},
		need:    []string{"type", "group"},
		blocks: map[string]level{"meta": meta, "group": {
			name: "group", named: true,
			ignored: "shutdown_delay stop_after_client_disconnect max_client_disconnect prevent_reschedule_on_lost " +
				"constraint affinity spread reschedule restart update migrate disconnect ephemeral_disk tuning",
			keys: map[string]kind{"meta": words, "count": {
				cty.Number, "want 1: several copies of a group are not run by the local scheduler; submit the job to Nomad",
				integer(1, 1).fits,
			}},
			need: []string{"task"},
			blocks: map[string]level{
				"meta":    meta,
				"scaling": {name: "scaling block", ignored: "enabled min max type policy"},
				"task": {
					name: "task", named: true,
					ignored: "kill_timeout kill_signal shutdown_delay restart constraint affinity logs",
					keys: map[string]kind{
						"meta": words, "env": words,
						"driver": text(`want "raw_exec" or "exec": others are not run by the local scheduler`, "raw_exec", "exec"),
					},
					need: []string{"driver", "config"},
					blocks: map[string]level{
						"meta": meta, "env": {name: "env", entries: true},
						"config": {
							name: "config", need: []string{"command"},
							keys: map[string]kind{
								"command":  {cty.String, "want the path of a program", func(v cty.Value) bool { return v.AsString() != "" }},
								"args":     {cty.List(cty.String), `want a list such as ["a", "b"]`, nil},
								"work_dir": word,
							},
						},
						"resources": {name: "resources", keys: map[string]kind{
							"cpu": integer(1, math.MaxInt32), "cores": integer(1, 1<<20),
							"memory": integer(1, largest), "memory_max": integer(-1, largest),
						}},
					},
				},
			},
		}},
	}
}

// check refuses what the local scheduler does not run as its author wrote it. What it
// accepts is read as for Nomad.
func (p *parser) check(l level, body *hclsyntax.Body, at jobfile.Pos) {
	ignored := strings.Fields(l.ignored)
	for _, a := range attributes(body) {
		switch k, known := l.keys[a.Name]; {
		case known:
			p.fits(k, a)
		case l.entries:
			p.fits(text("want a text in quotes"), a)
		case !slices.Contains(ignored, a.Name):
			p.refuse(l, p.pos(a.NameRange), "key", a.Name)
		}
	}
	first := map[string]jobfile.Pos{}
	for _, b := range body.Blocks {
		at := p.pos(b.TypeRange)
		inner, known := l.blocks[b.Type]
		old, twice := first[b.Type]
		switch {
		case !known && !slices.Contains(ignored, b.Type):
			p.refuse(l, at, "block", b.Type)
		case !known:
		case twice && b.Type != "variable":
			want := fmt.Sprintf("want one; the first is at %s", old)
			if inner.named {
				want += "; several are not run by the local scheduler, submit the job to Nomad"
			}
			p.fail(at, fmt.Sprintf("a second %s in the %s", b.Type, l.name), want)
		default:
			first[b.Type] = at
			if inner.named && len(b.Labels) != 1 {
				p.fail(at, "a "+b.Type+" without one name", "want "+b.Type+` "name" { ... }`)
			}
			p.check(inner, b.Body, at)
		}
	}
	for _, name := range l.need {
		_, block := first[name]
		if _, key := body.Attributes[name]; !key && !block {
			p.fail(at, fmt.Sprintf("a %s without %s", l.name, name), cmp.Or(l.keys[name].want, "want one"))
		}
	}
	if cpu, both := body.Attributes["cpu"]; both && body.Attributes["cores"] != nil {
		p.fail(p.pos(cpu.NameRange), "both cpu and cores", "want one of them")
	}
}

func (p *parser) fits(k kind, a *hclsyntax.Attribute) {
	v, ok := p.eval(a.Expr)
	if !ok {
		return
	}
	v, err := convert.Convert(v, k.is)
	fits := err == nil && !v.IsNull() && (k.fits == nil || k.fits(v))
	if fits && v.CanIterateElements() {
		for it := v.ElementIterator(); it.Next(); {
			_, e := it.Element()
			fits = fits && !e.IsNull()
		}
	}
	if fits {
		return
	}
	p.fail(p.pos(a.Expr.Range()), fmt.Sprintf("%s is %s", a.Name, strings.TrimSpace(p.text(a.Expr.Range()))), k.want)
}

func (p *parser) refuse(l level, at jobfile.Pos, what, name string) {
	for why, names := range notLocal() {
		if slices.Contains(strings.Fields(names), name) {
			p.fail(at, fmt.Sprintf("%s in the %s", name, l.name), why)
			return
		}
	}
	known := slices.Concat(slices.Collect(maps.Keys(l.keys)), slices.Collect(maps.Keys(l.blocks)), strings.Fields(l.ignored))
	slices.Sort(known)
	known = slices.Compact(known)
	want := "want NAME = value"
	if !l.entries {
		want = "want one of " + strings.Join(known, ", ")
	}
	p.fail(at, fmt.Sprintf("unknown %s %q in the %s", what, name, l.name), want+jobfile.Suggestion(name, known))
}

// notLocal has what Nomad knows and the local scheduler does not run, by the reason.
func notLocal() map[string]string {
	const toNomad = " by the local scheduler; submit the job to Nomad"
	return map[string]string{
		"networks and services are not set up" + toNomad:           "network service connect gateway",
		"volumes are not mounted" + toNomad:                        "volume volume_mount csi_plugin",
		"templates are not rendered" + toNomad:                     "template",
		"artifacts are not fetched" + toNomad:                      "artifact",
		"secrets are not fetched" + toNomad:                        "vault consul identity vault_token consul_token secret",
		"jobs that start others are not run" + toNomad:             "periodic parameterized dispatch_payload",
		"jobs of several regions are not run" + toNomad:            "multiregion",
		"jobs of several tasks are not run" + toNomad:              "lifecycle leader",
		"devices are not assigned" + toNomad:                       "device numa",
		"a job runs as the user who submits it; leave the key out": "user",
	}
}
