//! Requests in German, French, Spanish, Chinese and Japanese. Others are among the other kinds.

use serde_json::json;

use super::{Kind, Task};

pub(super) fn tasks() -> Vec<Task> {
    [european(), asian()].concat()
}

fn european() -> Vec<Task> {
    let title = "# Bienvenu\n\nCe projet compte les mots d'un texte.\n";
    vec![
        Task::new("de_port", Kind::Language, "Der Server soll auf Port 9443 lauschen.")
            .file("server.conf", "listen 8443\nroot /srv/www\nworkers 8\n")
            .file("LIESMICH.md", "Alle Einstellungen stehen in server.conf.\n")
            .replaces("server.conf", "8443", "9443"),
        Task::new(
            "fr_typo",
            Kind::Language,
            "Il y a une faute dans le titre de LISEZMOI.md : « Bienvenu » devrait être « Bienvenue ».",
        )
        .file("LISEZMOI.md", title)
        .file("mots.py", "print(len(input().split()))\n")
        .replaces("LISEZMOI.md", "Bienvenu", "Bienvenue"),
        Task::new(
            "fr_create",
            Kind::Language,
            "J'aurais besoin d'un fichier courses.txt avec trois lignes : lait, pain, beurre.",
        )
        .file("menu.txt", "lundi : soupe\n")
        .becomes(
            "courses.txt",
            &["lait\npain\nbeurre\n", "Lait\nPain\nBeurre\n", "- lait\n- pain\n- beurre\n"],
        ),
        Task::new("es_setting", Kind::Language, "¿Puedes poner el idioma de ajustes.json en español (es)?")
            .file("ajustes.json", "{\n  \"idioma\": \"en\",\n  \"sonido\": true\n}\n")
            .file("notas.txt", "El manual está en inglés (en).\n")
            .becomes_json("ajustes.json", json!({"idioma": "es", "sonido": true})),
    ]
}

fn asian() -> Vec<Task> {
    vec![
        Task::new("zh_setting", Kind::Language, "把 config.ini 里的超时时间改成 60 秒。")
            .file("config.ini", "[网络]\ntimeout = 30\nretries = 3\n")
            .file("说明.txt", "设置都在 config.ini 里。\n")
            .replaces("config.ini", "timeout = 30", "timeout = 60"),
        Task::new("zh_question", Kind::Language, "notes.txt 里写的会议是几点开始?")
            .file("notes.txt", "周一 10:00 站会\n周四 15:30 项目会议,三号会议室\n周五 17:00 聚餐\n")
            .says(&["15:30", "15\u{ff1a}30", "15点30分", "下午3点半", "下午三点半", "3:30"])
            .answers("会议在周四15:30开始。", "会议在周五17:00开始。"),
        Task::new("ja_replace", Kind::Language, "menu.txt の「珈琲」をすべて「コーヒー」に変えてください。")
            .file("menu.txt", "珈琲 400円\n紅茶 420円\nアイス珈琲 450円\n")
            .file("店名.txt", "珈琲館\n")
            .replaces("menu.txt", "珈琲", "コーヒー"),
        Task::new(
            "ja_question",
            Kind::Language,
            "users.csv で一番年上の人は誰ですか。名前だけ答えてください。",
        )
        .file("users.csv", "名前,年齢\n佐藤,34\n鈴木,58\n高橋,41\n")
        .says(&["鈴木"])
        .never_says("佐藤")
        .answers("鈴木さんです。", "佐藤さんです。"),
    ]
}
