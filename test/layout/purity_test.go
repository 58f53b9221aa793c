package layout

import (
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// outside are the packages of the standard library through which the world gets into a
// computation.
func outside() []string {
	return []string{
		"os", "net", "log", "syscall", "io/ioutil", "io/fs", "runtime", "plugin", "testing", "flag", "unsafe",
		"math/rand", "crypto/rand", "database/sql", "expvar", "path/filepath",
	}
}

// pureFile reports whether a file may not touch the world: those of the pure packages, and
// of those that read job files.
func pureFile(s source) bool {
	return !s.test && underAny(s.dir, append(slices.Collect(maps.Keys(pure())), "driver/jobfile"))
}

func libraryFile(s source) bool { return !s.test && !s.cmd() }

// ban is functions that a part of the tree does not call.
type ban struct {
	part func(source) bool
	pkg  string
	name string // a regular expression
	why  string
}

func bans() []ban {
	const value, writer, exit = "take the value as an argument", "write to an io.Writer that the caller gives", "return an error, main decides"
	return []ban{
		{pureFile, "time", "Now|Since|Until|Sleep|After|AfterFunc|Tick|NewTimer|NewTicker|LoadLocation", value},
		{pureFile, "math/rand/v2", "Int.*|Uint.*|Float.*|N|NormFloat64|ExpFloat64|Perm|Shuffle", value},
		{pureFile, "fmt", "Print.*|Scan.*", value},
		{libraryFile, "fmt", "Print|Printf|Println", writer},
		{libraryFile, "os", "Exit", exit},
		{libraryFile, "log", "Fatal|Fatalf|Fatalln", exit},
	}
}

func TestPurePackagesImportNothingOfTheWorld(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		for _, imported := range s.imports() {
			if pureFile(s) && underAny(imported, outside()) && imported != "math/rand/v2" {
				t.Errorf("%s imports %s, but %s is pure: take the value as an argument", s.path, imported, s.dir)
			}
		}
	}
}

func TestNoFileCallsWhatIsBannedThere(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		names := localNames(s)
		ast.Inspect(s.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			for _, b := range bans() {
				if names[x.Name] == b.pkg && b.part(s) && regexp.MustCompile("^("+b.name+")$").MatchString(sel.Sel.Name) {
					t.Errorf("%s uses %s.%s; %s", s.at(sel), x.Name, sel.Sel.Name, b.why)
				}
			}
			return true
		})
	}
}

// localNames maps the names under which a file knows packages to their paths.
func localNames(s source) map[string]string {
	out := map[string]string{}
	for i, spec := range s.ast.Imports {
		path := s.imports()[i]
		name := path[strings.LastIndex(path, "/")+1:]
		if path == "math/rand/v2" {
			name = "rand"
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		out[name] = path
	}
	return out
}

func TestNothingRunsBeforeMain(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		for _, decl := range s.ast.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: func init; build the value in main and pass it on", s.at(f))
			}
		}
	}
}

func TestPackagesHaveNoState(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, decl := range s.ast.Decls {
			g, ok := decl.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, spec := range g.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok && !constantLike(s, g, v) {
					t.Errorf("%s: package variable %s; make it a constant, a function or a field", s.at(v), v.Names[0].Name)
				}
			}
		}
	}
}

// constantLike reports whether a package variable only lacks the means of the
// language to be a constant: an error, an assertion of an interface, an embedded
// file, a regular expression, or the version that the linker writes into main.
func constantLike(s source, g *ast.GenDecl, v *ast.ValueSpec) bool {
	for _, doc := range []*ast.CommentGroup{g.Doc, v.Doc} {
		if doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") }) {
			return true
		}
	}
	for i, name := range v.Names {
		switch {
		case name.Name == "_":
		case s.cmd() && name.Name == "version" && s.ast.Name.Name == "main":
		case i < len(v.Values) && (made(v.Values[i], "errors", "New") || made(v.Values[i], "fmt", "Errorf")) &&
			(strings.HasPrefix(name.Name, "Err") || strings.HasPrefix(name.Name, "err")):
		case i < len(v.Values) && made(v.Values[i], "regexp", "MustCompile"):
		default:
			return false
		}
	}
	return true
}

func made(e ast.Expr, pkg, function string) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != function {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg
}

func TestEverySkipSaysWhy(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		ast.Inspect(s.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok || x.Name != "t" && x.Name != "b" && x.Name != "f" && x.Name != "tb" {
				return true
			}
			if sel.Sel.Name == "SkipNow" || (sel.Sel.Name == "Skip" || sel.Sel.Name == "Skipf") && len(call.Args) == 0 {
				t.Errorf("%s skips without a reason", s.at(call))
			}
			return true
		})
	}
}
