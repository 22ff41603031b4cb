from observatory.sdk.integrations.claude_code import main

raise SystemExit(main())
