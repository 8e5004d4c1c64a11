package schema

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/bufbuild/protocompile/ast"
	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/options"
	"github.com/bufbuild/protocompile/parser"
	"github.com/bufbuild/protocompile/reporter"
	"github.com/bufbuild/protocompile/sourceinfo"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/apipb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The files that are part of the language: google/protobuf/timestamp.proto and so on.
var _ = []protoreflect.FileDescriptor{
	anypb.File_google_protobuf_any_proto, apipb.File_google_protobuf_api_proto,
	durationpb.File_google_protobuf_duration_proto, emptypb.File_google_protobuf_empty_proto,
	fieldmaskpb.File_google_protobuf_field_mask_proto, structpb.File_google_protobuf_struct_proto,
	timestamppb.File_google_protobuf_timestamp_proto, wrapperspb.File_google_protobuf_wrappers_proto,
}

// protoFiles are the *.proto files of a directory and those below it. They are
// compiled together, and only when a message is first asked for: a program that meets
// no Protocol Buffers does not pay for them.
type protoFiles struct {
	fsys  fs.FS
	dir   string
	names []string    // below dir, as an import has them
	lazy  bool        // known to be sound, and not compiled to be checked
	below *protoFiles // of the protocol that these are laid over, or nil

	once       sync.Once
	err        error
	messages   map[string][]protoreflect.MessageDescriptor // by full name, and by the last part of it
	extensions map[protoreflect.FullName][]protoreflect.ExtensionDescriptor

	lock     sync.Mutex // of compiled
	compiled map[messageKey]*message
}

// findProtoFiles returns the files of a directory, or nil where it has none.
func findProtoFiles(fsys fs.FS, dir string, lazy bool) (*protoFiles, error) {
	f := &protoFiles{fsys: fsys, dir: dir, lazy: lazy}
	err := fs.WalkDir(fsys, dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && path.Ext(name) == ".proto" {
			f.names = append(f.names, strings.TrimPrefix(strings.TrimPrefix(name, path.Clean(dir)), "/"))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(f.names) == 0 {
		return nil, nil
	}
	return f, nil
}

// over returns the files of f and, for messages that they have not, those of below.
func (f *protoFiles) over(below *protoFiles) *protoFiles {
	if f == nil || below == nil {
		return cmp.Or(f, below)
	}
	return &protoFiles{fsys: f.fsys, dir: f.dir, names: f.names, lazy: f.lazy, below: below}
}

// open opens a file by the name that an import has.
func (f *protoFiles) open(name string) (io.ReadCloser, error) {
	return f.fsys.Open(path.Join(f.dir, name))
}

// compile compiles the files, once.
func (f *protoFiles) compile() error {
	f.once.Do(func() {
		c := protoCompiler{from: f, done: map[string]linker.File{}, symbols: &linker.Symbols{}, handler: reporter.NewHandler(nil)}
		for _, name := range f.names {
			if _, f.err = c.file(name, nil); f.err != nil {
				var placed reporter.ErrorWithPos
				if errors.As(f.err, &placed) {
					f.err = protoError(placed)
				}
				return
			}
		}
		f.index(c.files)
	})
	return f.err
}

// protoCompiler compiles files and what they import, each once. It does what the
// compiler of protocompile does, but for the work which that does at the start of any
// program that could call it.
type protoCompiler struct {
	from    *protoFiles
	done    map[string]linker.File
	files   linker.Files // those that are not part of the language, in the order of their need
	symbols *linker.Symbols
	handler *reporter.Handler
}

// file compiles a file, behind what it imports. The importers are those files that
// wait for it, the nearest last.
func (c *protoCompiler) file(name string, importers []string) (linker.File, error) {
	if done := c.done[name]; done != nil {
		return done, nil
	}
	file, err := c.source(name, append(importers, name))
	if errors.Is(err, fs.ErrNotExist) {
		known, missing := protoregistry.GlobalFiles.FindFileByPath(name)
		if missing != nil {
			return nil, fmt.Errorf("no file %s", name)
		}
		file, err = linker.NewFileRecursive(known)
	}
	c.done[name] = file
	return file, err
}

// source compiles a file of the user, or of the program.
func (c *protoCompiler) source(name string, importers []string) (linker.File, error) {
	text, err := c.from.open(name)
	if err != nil {
		return nil, err
	}
	defer text.Close()
	node, err := parser.Parse(name, text, c.handler)
	if err != nil {
		return nil, err
	}
	parsed, err := parser.ResultFromAST(node, !c.from.lazy, c.handler)
	if err != nil {
		return nil, err
	}
	var imports linker.Files
	for _, dependency := range parsed.FileDescriptorProto().GetDependency() {
		if slices.Contains(importers, dependency) {
			return nil, reporter.Errorf(importOf(node, dependency), "%s imports itself", dependency)
		}
		file, err := c.file(dependency, importers)
		if err != nil {
			return nil, withPlace(importOf(node, dependency), err)
		}
		imports = append(imports, file)
	}
	return c.link(parsed, imports)
}

func (c *protoCompiler) link(parsed parser.Result, imports linker.Files) (linker.File, error) {
	file, err := linker.Link(parsed, imports, c.symbols, c.handler)
	if err != nil {
		return nil, err
	}
	options, err := options.InterpretOptions(file, c.handler)
	if err != nil {
		return nil, err
	}
	if !c.from.lazy {
		if err := file.ValidateOptions(c.handler, c.symbols); err != nil {
			return nil, err
		}
	}
	parsed.FileDescriptorProto().SourceCodeInfo = sourceinfo.GenerateSourceInfo(parsed.AST(), options)
	file.PopulateSourceCodeInfo()
	file.RemoveAST()
	c.files = append(c.files, file)
	return file, c.handler.Error()
}

// withPlace gives an error a place, unless it has one.
func withPlace(at ast.SourceSpan, err error) error {
	if has := reporter.ErrorWithPos(nil); errors.As(err, &has) {
		return err
	}
	return reporter.Error(at, err)
}

// importOf returns where a file imports another one.
func importOf(node *ast.FileNode, name string) ast.SourceSpan {
	for _, d := range node.Decls {
		if i, ok := d.(*ast.ImportNode); ok && i.Name.AsString() == name {
			return node.NodeInfo(i.Name)
		}
	}
	return ast.UnknownSpan(name)
}

// protoError is a fault in a .proto file as one in any other schema file.
func protoError(err reporter.ErrorWithPos) *Error {
	at := err.GetPosition()
	return errorAt(Pos{at.Filename, max(at.Line, 1), max(at.Col, 1)}, "%s", err.Unwrap())
}

// index finds a place for each message and each extension.
func (f *protoFiles) index(files linker.Files) {
	f.messages = map[string][]protoreflect.MessageDescriptor{}
	f.extensions = map[protoreflect.FullName][]protoreflect.ExtensionDescriptor{}
	f.compiled = map[messageKey]*message{}
	for _, file := range files {
		f.indexMessages(file.Messages())
		f.indexExtensions(file.Extensions())
	}
}

func (f *protoFiles) indexMessages(list protoreflect.MessageDescriptors) {
	for i := range list.Len() {
		m := list.Get(i)
		if m.IsMapEntry() {
			continue
		}
		full, short := string(m.FullName()), string(m.Name())
		f.messages[full] = append(f.messages[full], m)
		if short != full {
			f.messages[short] = append(f.messages[short], m)
		}
		f.indexMessages(m.Messages())
		f.indexExtensions(m.Extensions())
	}
}

func (f *protoFiles) indexExtensions(list protoreflect.ExtensionDescriptors) {
	for i := range list.Len() {
		x := list.Get(i)
		to := x.ContainingMessage().FullName()
		f.extensions[to] = append(f.extensions[to], x)
	}
}

// find returns the message with a name, full or without its package, and the files
// that it is in. It returns nil where there is none.
func (f *protoFiles) find(name string, at Pos) (protoreflect.MessageDescriptor, *protoFiles, error) {
	if f == nil {
		return nil, nil, nil
	}
	if err := f.compile(); err != nil {
		return nil, nil, err
	}
	list := f.messages[name]
	if full := slices.IndexFunc(list, func(m protoreflect.MessageDescriptor) bool { return string(m.FullName()) == name }); full >= 0 {
		return list[full], f, nil
	}
	switch len(list) {
	case 0:
		return f.below.find(name, at)
	case 1:
		return list[0], f, nil
	}
	return nil, nil, errorAt(at, "%q is the name of several messages: %s and %s", name, list[0].FullName(), list[1].FullName())
}

// known returns the names of all messages, for a hint.
func (f *protoFiles) known() []string {
	if f == nil || f.compile() != nil {
		return nil
	}
	return append(slices.Collect(maps.Keys(f.messages)), f.below.known()...)
}
