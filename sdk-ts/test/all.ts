/** `node test/all.ts`: tests that need no gateway. The flows against a real one are in tests/flows/test_sdk_ts*.py. */
import "./encode.test.ts";
import "./files.test.ts";
import "./ids.test.ts";
import "./orders.test.ts";
import "./outbox.test.ts";
import "./waiting.test.ts";
