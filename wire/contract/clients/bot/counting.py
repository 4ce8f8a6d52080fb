"""A bot for the official runner. It counts messages in its storage, adds a reaction, and answers with the count."""


class CountingHandler:
    def usage(self):
        return "Counts."

    def handle_message(self, message, bot_handler):
        count = bot_handler.storage.get("count") + 1 if bot_handler.storage.contains("count") else 1
        bot_handler.storage.put("count", count)
        bot_handler.react(message, "tada")
        bot_handler.send_reply(message, f"{count}: {message['content']}")


handler_class = CountingHandler
