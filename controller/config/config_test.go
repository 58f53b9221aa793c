package config

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
	"golang.org/x/tools/txtar"

	"pitchpipe/test/fixtures"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func parsed(t *testing.T, args ...string) *pflag.FlagSet {
	t.Helper()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	Flags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return flags
}

func TestDefaultsDependOnWhoRuns(t *testing.T) {
	t.Parallel()
	common := func(c Config) Config {
		c.Driver, c.Listen = "local", "127.0.0.1:9821"
		c.Exporter.Socket = "/run/pitchpipe/exporter.sock"
		c.Exporter.Discovery, c.Exporter.Service = "static", "pitchpipe-exporter"
		c.Local.Cluster = "local"
		c.Slurm = Slurm{Dir: filepath.Join(c.State, "slurm"), Interval: 2 * time.Second, Settings: filepath.Join(c.State, "slurm-env")}
		c.Log = Log{Level: slog.LevelInfo, Format: "text"}
		c.Resync = 30 * time.Second
		c.Slurm.Mode, c.Slurm.Broker = "owner", "/run/pitchpipe-broker/broker.sock"
		c.Broker = Broker{Socket: c.Slurm.Broker, Dir: "/var/lib/pitchpipe-broker", Controller: []string{"pitchpipe"}, Accept: "plugin", Raise: 2 * time.Minute, Restarts: 20}
		c.Nomad = Nomad{Dir: filepath.Join(c.State, "nomad"), Resync: 30 * time.Second}
		c.Store = Store{Kind: "none", Prefix: "pitchpipe", TTL: 15 * time.Second, Delay: 5 * time.Second}
		return c
	}
	for _, tc := range []struct {
		name string
		euid int
		env  []string
		want Config
	}{
		{
			"root gets the directories of the system", 0,
			[]string{"XDG_RUNTIME_DIR=/run/user/0", "XDG_STATE_HOME=/state", "HOME=/home/r"},
			Config{Socket: "/run/pitchpipe/controller.sock", State: "/var/lib/pitchpipe", Local: Local{Dir: "/var/lib/pitchpipe/local"}},
		},
		{
			"a user gets the directories of the session", 1000,
			[]string{"XDG_RUNTIME_DIR=/run/user/1000", "XDG_STATE_HOME=/home/u/.state", "HOME=/home/u"},
			Config{Socket: "/run/user/1000/pitchpipe/controller.sock", State: "/home/u/.state/pitchpipe", Local: Local{Dir: "/home/u/.state/pitchpipe/local"}},
		},
		{
			"a user without a session gets the home directory and never a shared one", 1000,
			[]string{"HOME=/home/u", "XDG_STATE_HOME=relative"},
			Config{Socket: "/home/u/.local/state/pitchpipe/controller.sock", State: "/home/u/.local/state/pitchpipe", Local: Local{Dir: "/home/u/.local/state/pitchpipe/local"}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := load(nil, tc.env, "", tc.euid)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Given) > 0 {
				t.Errorf("nothing was given, and yet %v", got.Given)
			}
			got.Site, got.Given, got.Texts = "", nil, nil // the file exists on some machines
			if diff := cmp.Diff(common(tc.want), got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("load(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWithoutAHomeTheDefaultIsRefusedAndNamed(t *testing.T) {
	t.Parallel()
	_, err := load(nil, nil, "", 1000)
	if err == nil || !strings.Contains(err.Error(), "state") {
		t.Fatalf("load without HOME = %v, want an error about state", err)
	}
}

func TestPatternsLeadToAnExporterOnEachNode(t *testing.T) {
	t.Parallel()
	for pattern, ok := range map[string]bool{
		"unix:/run/pitchpipe/{node}.sock":              true,
		"unix:/run/{node}/{node}.sock":                 true,
		"https://{node}:9836":                          true,
		"https://{node}.cluster.example:9836":          true,
		"unix:/run/pitchpipe/exporter.sock":            false,
		"unix:run/{node}.sock":                         false,
		"/run/{node}.sock":                             false,
		"http://{node}:9836":                           false,
		"https://{node}":                               false,
		"https://{node}:0":                             false,
		"https://{node}:9836/":                         false,
		"https://{node}:9836/v1":                       false,
		"https://root@{node}:9836":                     false,
		"https://{node}:9836?x=1":                      false,
		"https://exporters.example:9836":               false,
		"HTTPS://{node}:9836":                          false,
		"unix:/" + strings.Repeat("x", 120) + "{node}": false,
	} {
		if got := exporterNodes().takes(pattern); got != ok {
			t.Errorf("%q: %v", pattern, got)
		}
	}
}

func TestFlagsStandOverEnvironmentOverFileOverDefaults(t *testing.T) {
	t.Parallel()
	// For every key four values that its default is not.
	values := map[string][3]string{
		"socket":             {"/f.sock", "/e.sock", "/g.sock"},
		"state":              {"/f", "/e", "/g"},
		"driver":             {"slurm", "local", "slurm"},
		"job_labels":         {"true", "false", "true"},
		"listen":             {"127.0.0.1:1", "127.0.0.1:2", ""},
		"exporter.socket":    {"/f.sock", "/e.sock", "/g.sock"},
		"exporter.nodes":     {"unix:/run/{node}.sock", "https://{node}:9836", ""},
		"exporter.cert":      {"/f.crt", "/e.crt", ""},
		"exporter.key":       {"/f.key", "/e.key", ""},
		"exporter.ca":        {"/f.crt", "/e.crt", ""},
		"exporter.discovery": {"nomad", "consul", "static"},
		"exporter.service":   {"f", "e@n", "g.h-i_j"},
		"local.cluster":      {"f", "e", "g"},
		"local.cores":        {"1", "2", "3"},
		"local.memory":       {"1GiB", "2GiB", "3GiB"},
		"local.dir":          {"/f", "/e", "/g"},
		"slurm.mode":         {"site", "owner", "site"},
		"slurm.broker":       {"/f.sock", "/e.sock", "/g.sock"},
		"slurm.plugin":       {"true", "1", "false"},
		"slurm.dir":          {"/f", "/e", "/g"},
		"slurm.bin":          {"/f", "/e", ""},
		"slurm.conf":         {"/f", "/e", ""},
		"slurm.interval":     {"1s", "3s", "4s"},
		"slurm.wake":         {"/f", "/e", ""},
		"slurm.partitions":   {"a", "b,c", ""},
		"slurm.task_prolog":  {"true", "1", "false"},
		"slurm.settings":     {"/f", "/e", "/g"},
		"broker.socket":      {"/f.sock", "/e.sock", "/g.sock"},
		"broker.dir":         {"/f", "/e", "/g"},
		"broker.controller":  {"a", "b,c", "d"},
		"broker.accept":      {"script", "plugin", "script"},
		"broker.above":       {"a", "b,c", ""},
		"broker.advice":      {"a", "b,c", ""},
		"broker.raise":       {"10s", "1m", "30s"},
		"broker.restarts":    {"1", "2", "3"},
		"nomad.address":      {"https://f:4646", "unix:///e.sock", ""},
		"nomad.namespaces":   {"a", "b,c", "*"},
		"nomad.people":       {"a=b", "a=b,c=*", ""},
		"nomad.token_file":   {"/f", "/e", ""},
		"nomad.ca":           {"/f", "/e", ""},
		"nomad.cert":         {"/f", "/e", ""},
		"nomad.key":          {"/f", "/e", ""},
		"nomad.dir":          {"/f", "/e", "/g"},
		"nomad.resync":       {"1s", "2s", "3s"},
		"store.kind":         {"file", "nomad", "consul"},
		"store.path":         {"/f", "/e", "/g"},
		"store.prefix":       {"f", "e/e", "g"},
		"store.address":      {"http://f", "http://e", ""},
		"store.namespace":    {"f", "e", ""},
		"store.token_file":   {"/f", "/e", ""},
		"store.ttl":          {"10s", "20s", "10m"},
		"store.delay":        {"1s", "2s", "1m"},
		"log.level":          {"debug", "warn", "error"},
		"log.format":         {"json", "text", "json"},
		"resync":             {"1s", "2s", "3s"},
		"site":               {"/f", "", "/g"},
	}
	read := func(t *testing.T, flags *pflag.FlagSet, env []string, path string) Config {
		t.Helper()
		c, err := load(flags, append(env, "HOME=/home/u"), path, 1000)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, k := range Keys() {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			v, ok := values[k.Name]
			if !ok {
				t.Fatalf("no values to try for the key %q: add them to this test", k.Name)
			}
			file := "# nothing\n"
			parts := strings.Split(k.Name, ".")
			for i, part := range parts {
				file += strings.Repeat("  ", i) + part + ":"
				if i == len(parts)-1 {
					file += " \"" + v[0] + "\""
				}
				file += "\n"
			}
			path := write(t, "controller.yaml", file)
			env := []string{k.variable() + "=" + v[1]}
			flags := parsed(t, "--"+k.Name+"="+v[2])

			base := read(t, parsed(t), nil, "")
			for i, got := range []Config{
				read(t, parsed(t), nil, path), // a flag that was not given has no say
				read(t, nil, env, path),
				read(t, flags, env, path),
			} {
				want, texts := base, map[string]string{}
				maps.Copy(texts, base.Texts)
				texts[k.Name], want.Texts = got.Texts[k.Name], texts
				set(t, &want, k.Name, v[i])
				if k.Name == "state" {
					want.Local.Dir = filepath.Join(want.State, "local")
					want.Slurm.Dir = filepath.Join(want.State, "slurm")
					want.Slurm.Settings = filepath.Join(want.State, "slurm-env")
					want.Nomad.Dir = filepath.Join(want.State, "nomad")
					want.Texts = got.Texts // those below state too
				}
				if got.Texts[k.Name] != v[i] {
					t.Errorf("layer %d: the text is %q, want %q", i, got.Texts[k.Name], v[i])
				}
				last := parts[len(parts)-1]
				want.Given = map[string]string{k.Name: []string{
					fmt.Sprintf("%s:%d:%d", path, 1+len(parts), 2*(len(parts)-1)+len(last)+3), k.variable(), "--" + k.Name,
				}[i]}
				if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("layer %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

// set sets the field of a dotted key.
func set(t *testing.T, c *Config, name, text string) {
	t.Helper()
	dc := &mapstructure.DecoderConfig{Result: c}
	strict(dc)
	decoder, err := mapstructure.NewDecoder(dc)
	if err != nil {
		t.Fatal(err)
	}
	value, _ := types(Keys())[name].read(text)
	for part := range slices.Backward(strings.Split(name, ".")) {
		value = map[string]any{strings.Split(name, ".")[part]: value}
	}
	if err := decoder.Decode(value); err != nil {
		t.Fatal(err)
	}
}

func TestAFileThatIsNamedHasToExist(t *testing.T) {
	t.Parallel()
	if _, err := Load(nil, nil, "/nonexistent/controller.yaml"); !os.IsNotExist(unwrapAll(err)) {
		t.Fatalf("Load = %v, want a missing file", err)
	}
}

func unwrapAll(err error) error {
	for {
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		err = u.Unwrap()
	}
}

func TestFileIsTheNamedThenTheUsersThenNone(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	own := filepath.Join(home, "pitchpipe", "controller.yaml")
	if err := os.Mkdir(filepath.Dir(own), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(own, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	other := write(t, "broker.yaml", "")
	for _, tc := range []struct {
		name, want string
		env        []string
	}{
		{"the variable names it, even a missing one", "/missing.yaml", []string{"PITCHPIPE_CONFIG=/missing.yaml", "XDG_CONFIG_HOME=" + home}},
		{"an empty variable means none", "", []string{"PITCHPIPE_CONFIG=", "XDG_CONFIG_HOME=" + home}},
		{"the user's own is found", own, []string{"XDG_CONFIG_HOME=" + home}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := File(tc.env); got != tc.want {
				t.Errorf("File(%q) = %q, want %q", tc.env, got, tc.want)
			}
			if got := File(tc.env, other); !strings.HasPrefix(tc.env[0], "PITCHPIPE_CONFIG") && got != other {
				t.Errorf("File(%q) of a command with a file of its own = %q, want %q", tc.env, got, other)
			}
		})
	}
}

// TestFaultsOfTheController reads testdata/config/*.txtar: a file, environment and
// flags, and the faults that they have.
func TestFaultsOfTheController(t *testing.T) {
	t.Parallel()
	for _, g := range goldens(t, "testdata/config/*.txtar", 15) {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			env := append(strings.Fields(g.section("env")), "HOME=/home/u")
			path, dir := "", ""
			if g.has("controller.yaml") {
				path = write(t, "controller.yaml", g.section("controller.yaml"))
				dir = filepath.Dir(path) + "/"
			}
			_, err := load(parsed(t, strings.Fields(g.section("flags"))...), env, path, 1000)
			if err == nil {
				t.Fatal("load took it, want faults")
			}
			text := err.Error() + "\n"
			if dir != "" {
				text = strings.ReplaceAll(text, dir, "")
			}
			g.want(t, "faults", text)
		})
	}
}

func TestReferenceIsUpToDate(t *testing.T) {
	t.Parallel()
	fixtures.Golden(t, *update, "REFERENCE.md", reference())
}

func FuzzControllerFile(f *testing.F) {
	archives, err := filepath.Glob("testdata/config/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range archives {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range a.Files {
			f.Add(file.Data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, values := document{file: "x.yaml"}, map[string]scalar{}
		d.flatten("", "", d.parse(data), types(Keys()), values)
		for _, fault := range d.faults {
			if !strings.HasPrefix(fault.Pos.String(), "x.yaml") || fault.fault == "" {
				t.Errorf("a fault without place or text: %+v", fault)
			}
		}
		for name := range values {
			if _, known := types(Keys())[name]; !known {
				t.Errorf("accepted the unknown key %q", name)
			}
		}
	})
}
