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

	"github.com/go-viper/mapstructure/v2"
	"go.yaml.in/yaml/v3"

	"pitchpipe/controller/tuning"
)

// SitePolicy is what the administrator allows: a default block and blocks for single
// partitions, accounts, QOS and users, each of which says only what it changes. They apply from
// the widest to the narrowest, and for each field the narrowest that sets it wins, whether it
// allows more or less: a site may forbid everything and allow it for one user, or the reverse.
//
// A SitePolicy does not change and is safe for concurrent use. Its zero value is the policy of
// a site that wrote none.
type SitePolicy struct {
	base  block
	scope map[string]map[string]block // by scope, then by name

	resolved sync.Map // a tuning.Site by the names of a job: each is asked for again and again
}

// block is what a block sets, key by key.
type block []func(*tuning.Site)

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

func (p *SitePolicy) resolve(names [4]string) tuning.Site {
	site := tuning.DefaultSite()
	site.Sources = map[string]string{"ceilings": tuning.FromDefault}
	for _, k := range siteKeys() {
		site.Sources[k.Name] = tuning.FromDefault
	}
	blocks := []block{p.base}
	for i, name := range names {
		if name != "" {
			blocks = append(blocks, p.scope[scopes()[i]][name])
		}
	}
	for _, set := range slices.Concat(blocks...) {
		set(&site)
	}
	return site
}

// setting is what one key sets, to a text that its type has checked.
func setting(name string, v scalar) func(*tuning.Site) {
	group, key, _ := strings.Cut(name, ".")
	from := fmt.Sprintf("%s:%d", v.pos.name, v.pos.line)
	bytes, err := tuning.ParseBytes(v.text)
	value := tuning.ParseValue(v.text)
	if key == tuning.Memory && err == nil {
		value = tuning.Number(float64(bytes))
	}
	return func(s *tuning.Site) {
		s.Sources[group], s.Sources[name] = from, from
		switch {
		case group == "prices":
		case group == "knobs" && v.text == "all":
			s.Knobs = nil
		case group == "knobs":
			s.Knobs = items(v.text)
		case group == "ceilings":
			if s.Ceilings = s.Ceilings.With(key, value); v.text == "none" {
				delete(s.Ceilings, key)
			}
		default:
			decode(s, name, v.text)
		}
	}
}

// decode sets the field of a key to what a text means that its type has checked.
func decode[T any](into *T, key, text string) {
	dc := &mapstructure.DecoderConfig{Result: into}
	strict(dc)
	decoder, err := mapstructure.NewDecoder(dc)
	if err == nil {
		err = decoder.Decode(map[string]any{key: text})
	}
	if err != nil {
		panic(fmt.Sprintf("config: the table of keys and %T disagree: %v", into, err)) // a test decodes each key
	}
}

func parseSite(file string, data []byte) (*SitePolicy, error) {
	d := document{file: file}
	p := &SitePolicy{scope: map[string]map[string]block{}}
	for _, top := range d.pairs("", d.parse(data)) {
		name := top.key.Value
		switch {
		case name == "default":
			p.base = d.block(name, top.value, true)
		case slices.Contains(scopes(), name):
			p.scope[name] = map[string]block{}
			for _, one := range d.pairs(name, top.value) {
				if one.key.Value == "" {
					d.fault(d.at(one.key), name, "an empty name", "want the name of a "+name)
					continue
				}
				p.scope[name][one.key.Value] = d.block(join(name, one.key.Value), one.value, false)
			}
		case slices.ContainsFunc(siteKeys(), func(k Key) bool { return k.Name == name || strings.HasPrefix(k.Name, name+".") }):
			d.fault(d.at(top.key), name, "a key outside of every block", fmt.Sprintf("want it in a block such as default: {%s: %s}", name, top.value.Value))
		default:
			d.unknown(top.key, "", name, append([]string{"default"}, scopes()...))
		}
	}
	if len(d.faults) > 0 {
		return nil, joined(d.faults)
	}
	return p, nil
}

func (d *document) block(path string, n *yaml.Node, base bool) (out block) {
	values, before, tariff, first := map[string]scalar{}, len(d.faults), tuning.Tariff{}, place{}
	d.flatten(path, "", n, types(siteKeys()), values)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		v := values[name]
		out = append(out, setting(name, v))
		if price, ok := strings.CutPrefix(name, "prices"); ok {
			if first == (place{}) {
				first = v.pos
			}
			if tariff.Billed = price == ""; !tariff.Billed {
				decode(&tariff, price[1:], v.text)
			}
		}
	}
	for _, k := range siteKeys() {
		if v, ok := values[k.Name]; ok && k.Wide && !base {
			d.fault(v.pos, join(path, k.Name), "it counts over the whole cluster", "want it in the default block")
		}
	}
	switch {
	case len(d.faults) > before, first == (place{}):
		return out
	case !tariff.Billed && tariff.CoreHour+tariff.GiBHour+tariff.GPUHour+tariff.KWh == 0:
		d.fault(first, join(path, "prices"), "everything is free", "want a price above 0")
	case !tariff.Billed && tariff.Unit == "":
		d.fault(first, join(path, "prices"), "prices without a unit", "want unit, such as EUR")
	}
	return append(out, func(s *tuning.Site) { s.Tariff = tariff })
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
