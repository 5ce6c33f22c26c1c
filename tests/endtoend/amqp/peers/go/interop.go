package main

// Does with go-amqp what interop.py says.

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	amqp "github.com/Azure/go-amqp"
)

type typed []any

type item struct {
	Name        string           `json:"name"`
	Body        typed            `json:"body"`
	Data        *string          `json:"data"`
	Parts       []string         `json:"parts"`
	Sequence    []typed          `json:"sequence"`
	Subject     json.RawMessage  `json:"subject"`
	Header      map[string]any   `json:"header"`
	Properties  map[string]any   `json:"properties"`
	Application map[string]typed `json:"application"`
	Annotations map[string]typed `json:"annotations"`
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func signed(text any, bits int) int64    { return must(strconv.ParseInt(text.(string), 10, bits)) }
func unsigned(text any, bits int) uint64 { return must(strconv.ParseUint(text.(string), 10, bits)) }
func digits(text any) []byte             { return must(hex.DecodeString(text.(string))) }

func simple(kind string, value any) any {
	switch kind {
	case "null":
		return nil
	case "boolean":
		return value.(bool)
	case "ubyte":
		return uint8(unsigned(value, 8))
	case "ushort":
		return uint16(unsigned(value, 16))
	case "uint":
		return uint32(unsigned(value, 32))
	case "ulong":
		return unsigned(value, 64)
	case "byte":
		return int8(signed(value, 8))
	case "short":
		return int16(signed(value, 16))
	case "int":
		return int32(signed(value, 32))
	case "long":
		return signed(value, 64)
	case "float":
		return math.Float32frombits(uint32(must(strconv.ParseUint(value.(string), 16, 32))))
	case "double":
		return math.Float64frombits(must(strconv.ParseUint(value.(string), 16, 64)))
	case "timestamp":
		return time.UnixMilli(signed(value, 64)).UTC()
	case "uuid":
		return amqp.UUID(digits(value))
	case "binary":
		return digits(value)
	case "string":
		return value.(string)
	case "symbol":
		return amqp.Symbol(value.(string))
	}
	panic("no type of go-amqp: " + kind)
}

func array[T any](kind string, values []any) []T {
	found := []T{}
	for _, one := range values {
		found = append(found, simple(kind, one).(T))
	}
	return found
}

func made(given []any) any {
	kind := given[0].(string)
	switch kind {
	case "list":
		found := []any{}
		for _, one := range given[1].([]any) {
			found = append(found, made(one.([]any)))
		}
		return found
	case "map":
		found := map[any]any{}
		for _, pair := range given[1].([]any) {
			both := pair.([]any)
			found[made(both[0].([]any))] = made(both[1].([]any))
		}
		return found
	case "array":
		inner := given[1].([]any)
		kind, values := inner[0].(string), inner[1].([]any)
		switch kind {
		case "boolean":
			return array[bool](kind, values)
		case "byte":
			return array[int8](kind, values)
		case "short":
			return array[int16](kind, values)
		case "int":
			return array[int32](kind, values)
		case "long":
			return array[int64](kind, values)
		case "uint":
			return array[uint32](kind, values)
		case "ulong":
			return array[uint64](kind, values)
		case "double":
			return array[float64](kind, values)
		case "string":
			return array[string](kind, values)
		case "symbol":
			return array[amqp.Symbol](kind, values)
		case "timestamp":
			return array[time.Time](kind, values)
		case "uuid":
			return array[amqp.UUID](kind, values)
		}
	}
	return simple(kind, given[1])
}

func pointer[T any](value T) *T { return &value }

func message(one item) *amqp.Message {
	said := &amqp.Message{Properties: &amqp.MessageProperties{Subject: &one.Name}}
	if one.Subject != nil {
		said.Properties.Subject = nil
		check(json.Unmarshal(one.Subject, &said.Properties.Subject))
	}
	if one.Data != nil {
		said.Data = [][]byte{digits(*one.Data)}
	} else if one.Parts != nil {
		for _, part := range one.Parts {
			said.Data = append(said.Data, digits(part))
		}
	} else if one.Sequence != nil {
		values := []any{}
		for _, value := range one.Sequence {
			values = append(values, made(value))
		}
		said.Sequence = [][]any{values}
	} else {
		said.Value = made(one.Body)
	}
	if one.Header != nil {
		said.Header = &amqp.MessageHeader{Priority: 4}
		for name, value := range one.Header {
			switch name {
			case "durable":
				said.Header.Durable = value.(bool)
			case "priority":
				said.Header.Priority = uint8(value.(float64))
			case "ttl":
				said.Header.TTL = time.Duration(value.(float64)) * time.Millisecond
			}
		}
	}
	for name, value := range one.Properties {
		to := said.Properties
		switch name {
		case "message_id":
			to.MessageID = made(value.([]any))
		case "correlation_id":
			to.CorrelationID = made(value.([]any))
		case "user_id":
			to.UserID = digits(value)
		case "to":
			to.To = pointer(value.(string))
		case "reply_to":
			to.ReplyTo = pointer(value.(string))
		case "content_type":
			to.ContentType = pointer(value.(string))
		case "content_encoding":
			to.ContentEncoding = pointer(value.(string))
		case "group_id":
			to.GroupID = pointer(value.(string))
		case "group_sequence":
			to.GroupSequence = pointer(uint32(value.(float64)))
		case "reply_to_group_id":
			to.ReplyToGroupID = pointer(value.(string))
		case "absolute_expiry_time":
			to.AbsoluteExpiryTime = pointer(time.UnixMilli(int64(value.(float64))))
		case "creation_time":
			to.CreationTime = pointer(time.UnixMilli(int64(value.(float64))))
		}
	}
	for name, value := range one.Application {
		if said.ApplicationProperties == nil {
			said.ApplicationProperties = map[string]any{}
		}
		said.ApplicationProperties[name] = made(value)
	}
	for name, value := range one.Annotations {
		if said.Annotations == nil {
			said.Annotations = amqp.Annotations{}
		}
		said.Annotations[name] = made(value)
	}
	return said
}

func shown[T any](value *T) string {
	if value == nil {
		return "-"
	}
	return fmt.Sprintf("%#v", *value)
}

// When it was made and when it ends; of one that was made just now how long it lives.
func times(made, ends *time.Time) string {
	if made == nil || time.Since(*made).Abs() > 24*time.Hour {
		return shown(made) + " " + shown(ends)
	}
	if ends == nil {
		return "now"
	}
	return fmt.Sprintf("now for %v", ends.Sub(*made))
}

func told(said *amqp.Message) string {
	durable, priority, ttl := false, uint8(4), false
	if said.Header != nil {
		durable, priority, ttl = said.Header.Durable, said.Header.Priority, said.Header.TTL > 0
	}
	found := fmt.Sprintf("%v %v %v", durable, priority, ttl)
	if to := said.Properties; to != nil {
		found += fmt.Sprintf(" %#v %x %s %s %s %#v %s %s %s %s %s %s", to.MessageID, to.UserID, shown(to.To), shown(to.Subject),
			shown(to.ReplyTo), to.CorrelationID, shown(to.ContentType), shown(to.ContentEncoding),
			times(to.CreationTime, to.AbsoluteExpiryTime), shown(to.GroupID), shown(to.GroupSequence), shown(to.ReplyToGroupID))
	}
	return found + fmt.Sprintf(" %#v %#v\t%x %#v %#v", said.ApplicationProperties, said.Annotations, said.Data, said.Sequence,
		said.Value)
}

func attempt(name string, what func() string) {
	defer func() {
		if problem := recover(); problem != nil {
			fmt.Println(name + "\tcannot\t" + strings.ReplaceAll(fmt.Sprint(problem), "\n", " "))
		}
	}()
	found := what()
	fmt.Println(name + "\t" + found)
}

func cases(file string) []item {
	var found []item
	check(json.Unmarshal(must(os.ReadFile(file)), &found))
	return found
}

func subject(said *amqp.Message) string {
	if said.Properties == nil || said.Properties.Subject == nil {
		return "-"
	}
	return *said.Properties.Subject
}

func interop(words []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if words[0] == "encode" {
		for _, one := range cases(words[1]) {
			attempt(one.Name, func() string { return hex.EncodeToString(must(message(one).MarshalBinary())) })
		}
		return
	}
	if words[0] == "decode" {
		lines := bufio.NewScanner(os.Stdin)
		lines.Buffer(nil, 1<<24)
		for lines.Scan() {
			name, text, _ := strings.Cut(lines.Text(), "\t")
			attempt(name, func() string {
				said := &amqp.Message{}
				must(0, said.UnmarshalBinary(digits(text)))
				return told(said)
			})
		}
		return
	}
	frame := uint32(0)
	if words[0] == "receive" || words[3] == "receive" {
		frame = uint32(must(strconv.Atoi(words[4])))
	}
	options := &amqp.ConnOptions{SASLType: amqp.SASLTypeAnonymous(), MaxFrameSize: frame}
	connection := must(amqp.Dial(ctx, words[1], options))
	session := must(connection.NewSession(ctx, nil))
	switch {
	case words[0] == "send":
		sender := must(session.NewSender(ctx, words[2], nil))
		for _, one := range cases(words[3]) {
			if slices.Contains(words[4:], one.Name) {
				check(sender.Send(ctx, message(one), nil))
			}
		}
	case words[0] == "receive":
		receiver := must(session.NewReceiver(ctx, words[2], nil))
		for left := must(strconv.Atoi(words[3])); left > 0; left-- {
			said := must(receiver.Receive(ctx, nil))
			fmt.Println(subject(said) + "\t" + told(said))
			check(receiver.AcceptMessage(ctx, said))
		}
	case words[3] == "send":
		pattern := make([]byte, 251)
		for at := range pattern {
			pattern[at] = byte(at)
		}
		size := must(strconv.Atoi(words[4]))
		said := amqp.NewMessage(bytes.Repeat(pattern, size/251+1)[:size])
		said.Header = &amqp.MessageHeader{Durable: true}
		sender := must(session.NewSender(ctx, words[2], nil))
		check(sender.Send(ctx, said, nil))
	default:
		receiver := must(session.NewReceiver(ctx, words[2], nil))
		said := must(receiver.Receive(ctx, nil))
		fmt.Printf("%d %x\n", len(said.GetData()), sha256.Sum256(said.GetData()))
		check(receiver.AcceptMessage(ctx, said))
	}
	check(connection.Close())
}
