package config

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver/jobfile"
)

// SitePolicy is what the administrator allows: a default block, and blocks for single
// partitions, accounts, QOS and users, which hold only what they change. They apply from the
// widest to the narrowest, and for each field the narrowest that sets it wins, whether it
// allows more or less: a site may forbid everything and allow it for one user, or the reverse.
//
// A SitePolicy does not change and is safe for concurrent use. Its zero value is the policy of
// a site that wrote none.
type SitePolicy struct {
	blocks   map[[2]string]block // by scope and name
	resolved sync.Map            // a tuning.Site by the names of a job: many jobs share each
}

// block is what a block sets, by key.
type block map[string]scalar

// usual is the block that counts for all jobs.
const usual = "default"

// The scopes, from the widest to the narrowest.
func scopes() []string { return []string{"partition", "account", "qos", "user"} }

// For resolves the policy for one job. An empty name matches no block. The result is the
// caller's own.
func (p *SitePolicy) For(partition, account, qos, user string) tuning.Site {
	names := [...]string{partition, account, qos, user}
	found, ok := p.resolved.Load(names)
	if !ok {
		found, _ = p.resolved.LoadOrStore(names, p.resolve(names))
	}
	site, _ := found.(tuning.Site)
	site.Knobs, site.Ceilings, site.Sources = slices.Clone(site.Knobs), maps.Clone(site.Ceilings), maps.Clone(site.Sources)
	return site
}

// Unknown are the scopes of these names of a job that are empty and that have blocks: one of them may count.
func (p *SitePolicy) Unknown(partition, account, qos string) (out []string) {
	for i, name := range []string{partition, account, qos} {
		scope := scopes()[i]
		for of := range p.blocks {
			if name == "" && of[0] == scope && !slices.Contains(out, scope) {
				out = append(out, scope)
			}
		}
	}
	return out
}

func (p *SitePolicy) resolve(names [4]string) tuning.Site {
	site := tuning.DefaultSite()
	site.Sources = map[string]string{"ceilings": tuning.FromDefault}
	for _, k := range siteKeys() {
		site.Sources[k.Name] = tuning.FromDefault
	}
	p.blocks[[2]string{usual}].set(&site)
	for i, name := range names {
		p.blocks[[2]string{scopes()[i], name}].set(&site)
	}
	return site
}

func (b block) set(s *tuning.Site) {
	values := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(b)) {
		v := b[name]
		group, knob, _ := strings.Cut(name, ".")
		s.Sources[name] = fmt.Sprintf("%s:%d", v.pos.Filename, v.pos.Line)
		s.Sources[group] = s.Sources[name]
		switch most, isNumber := v.value.(float64); {
		case group == "prices":
		case group == "knobs" && v.text == "all":
			s.Knobs = nil
		case group != "ceilings":
			values[name] = v.value
		case isNumber:
			s.Ceilings = s.Ceilings.With(knob, tuning.Number(most))
		default: // none
			delete(s.Ceilings, knob)
		}
	}
	decode(s, values)
	if t, priced := b.tariff(); priced {
		s.Tariff = t
	}
}

// tariff returns the prices of the block; not priced: it has none.
func (b block) tariff() (t tuning.Tariff, priced bool) {
	prices := map[string]any{}
	for name, v := range b {
		if price, is := strings.CutPrefix(name, "prices."); is {
			prices[price] = v.value
		}
	}
	decode(&t, prices)
	_, t.Billed = b["prices"]
	return t, t.Billed || len(prices) > 0
}

// decode sets the fields of keys to what their types have read.
func decode(into any, values map[string]any) {
	v := viper.New()
	for key, value := range values {
		v.Set(key, value)
	}
	if err := v.Unmarshal(into, strict); err != nil {
		panic(fmt.Sprintf("config: the table of keys and %T disagree: %v", into, err)) // a test decodes each key
	}
}

func parseSite(file string, data []byte) (*SitePolicy, error) {
	d := document{file: file}
	p := &SitePolicy{blocks: map[[2]string]block{}}
	for _, top := range d.pairs("", d.parse(data)) {
		name := top.key.Value
		switch {
		case name == usual:
			p.blocks[[2]string{usual}] = d.block(name, top.value)
		case slices.Contains(scopes(), name):
			for _, one := range d.pairs(name, top.value) {
				if one.key.Value == "" {
					d.fault(d.at(one.key), name, "an empty name", "want the name of a "+name)
					continue
				}
				p.blocks[[2]string{name, one.key.Value}] = d.block(join(name, one.key.Value), one.value)
			}
		case slices.ContainsFunc(siteKeys(), func(k Key) bool { return k.Name == name || strings.HasPrefix(k.Name, name+".") }):
			d.fault(d.at(top.key), name, "a key outside of every block", fmt.Sprintf("want it in a block such as default: {%s: %s}", name, top.value.Value))
		default:
			d.unknown(top.key, "", name, append([]string{usual}, scopes()...))
		}
	}
	if len(d.faults) > 0 {
		return nil, joined(d.faults)
	}
	return p, nil
}

func (d *document) block(path string, n *yaml.Node) block {
	b, before, prices := block{}, len(d.faults), []jobfile.Pos{}
	d.flatten(path, "", n, types(siteKeys()), b)
	for _, k := range siteKeys() {
		v, set := b[k.Name]
		if set && k.Wide && path != usual {
			d.fault(v.pos, join(path, k.Name), "it counts over the whole cluster", "want it in the default block")
		}
		if set && strings.HasPrefix(k.Name, "prices") {
			prices = append(prices, v.pos)
		}
	}
	switch t, priced := b.tariff(); {
	case len(d.faults) > before, !priced, t.Billed:
	case t.CoreHour+t.GiBHour+t.GPUHour+t.KWh == 0:
		d.fault(prices[0], join(path, "prices"), "everything is free", "want a price above 0")
	case t.Unit == "":
		d.fault(prices[0], join(path, "prices"), "prices without a unit", "want unit, such as EUR")
	}
	return b
}

// LoadSite reads the site's policy. An empty path is the policy of a site that wrote none; a
// file that is named and missing is an error, so that a lost policy stops the controller
// rather than freeing it. Faults come all at once.
//
// When the process runs as root, a file or its directory that another user owns, or that its
// group or others may write, is ErrUntrusted.
func LoadSite(path string) (*SitePolicy, error) {
	return loadSite(path, os.Geteuid())
}

func loadSite(path string, euid int) (*SitePolicy, error) {
	if path == "" {
		return &SitePolicy{}, nil
	}
	target, err := filepath.EvalSymlinks(path)
	var data []byte
	if err == nil {
		data, err = readChecked(target, maxFile, func(file fs.FileInfo) error {
			if euid != 0 {
				return nil
			}
			folder, err := os.Stat(filepath.Dir(target))
			if err != nil {
				return err
			}
			return cmp.Or(distrust(target, file, 0o022, 0), distrust(filepath.Dir(target), folder, 0o022, 0))
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read the site's policy: %w", err)
	}
	return parseSite(path, data)
}
