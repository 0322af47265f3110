"""What to cite: BibTeX of the papers that the methods come from, and of besag itself. Knows nothing of the methods."""

from __future__ import annotations

BESAG = "besag"

BIBTEX: dict[str, str] = {
    BESAG: """@software{besag,
  title = {besag: turn any masked language model into a language model},
  author = {{The besag authors}},
  year = {2026},
  license = {Apache-2.0}
}""",
    "besag1974": """@article{besag1974,
  title = {Spatial Interaction and the Statistical Analysis of Lattice Systems},
  author = {Besag, Julian},
  journal = {Journal of the Royal Statistical Society: Series B},
  volume = {36},
  number = {2},
  pages = {192--236},
  year = {1974},
  doi = {10.1111/j.2517-6161.1974.tb00999.x}
}""",
    "besag1975": """@article{besag1975,
  title = {Statistical Analysis of Non-Lattice Data},
  author = {Besag, Julian},
  journal = {The Statistician},
  volume = {24},
  number = {3},
  pages = {179--195},
  year = {1975},
  doi = {10.2307/2987782}
}""",
    "shannon1948": """@article{shannon1948,
  title = {A Mathematical Theory of Communication},
  author = {Shannon, Claude E.},
  journal = {The Bell System Technical Journal},
  volume = {27},
  number = {3},
  pages = {379--423},
  year = {1948},
  doi = {10.1002/j.1538-7305.1948.tb01338.x}
}""",
    "arnold1989": """@article{arnold1989,
  title = {Compatible Conditional Distributions},
  author = {Arnold, Barry C. and Press, S. James},
  journal = {Journal of the American Statistical Association},
  volume = {84},
  number = {405},
  pages = {152--156},
  year = {1989},
  doi = {10.1080/01621459.1989.10478750}
}""",
    "arnold1998": """@article{arnold1998,
  title = {Distributions Most Nearly Compatible with Given Families of Conditional Distributions},
  author = {Arnold, Barry C. and Gokhale, Dattaprabhakar V.},
  journal = {Test},
  volume = {7},
  number = {2},
  pages = {377--390},
  year = {1998},
  doi = {10.1007/BF02565119}
}""",
    "uria2014": """@inproceedings{uria2014,
  title = {A Deep and Tractable Density Estimator},
  author = {Uria, Benigno and Murray, Iain and Larochelle, Hugo},
  booktitle = {Proceedings of the 31st International Conference on Machine Learning},
  series = {Proceedings of Machine Learning Research},
  volume = {32},
  pages = {467--475},
  year = {2014},
  eprint = {1310.1757},
  archiveprefix = {arXiv}
}""",
    "wang2019": """@inproceedings{wang2019,
  title = {{BERT} has a Mouth, and It Must Speak: {BERT} as a {M}arkov Random Field Language Model},
  author = {Wang, Alex and Cho, Kyunghyun},
  booktitle = {Proceedings of the Workshop on Methods for Optimizing and Evaluating Neural Language Generation},
  publisher = {Association for Computational Linguistics},
  pages = {30--36},
  year = {2019},
  doi = {10.18653/v1/W19-2304}
}""",
    "ghazvininejad2019": """@inproceedings{ghazvininejad2019,
  title = {Mask-Predict: Parallel Decoding of Conditional Masked Language Models},
  author = {Ghazvininejad, Marjan and Levy, Omer and Liu, Yinhan and Zettlemoyer, Luke},
  booktitle = {Proceedings of the 2019 Conference on Empirical Methods in Natural Language Processing and the 9th
               International Joint Conference on Natural Language Processing (EMNLP-IJCNLP)},
  publisher = {Association for Computational Linguistics},
  pages = {6112--6121},
  year = {2019},
  doi = {10.18653/v1/D19-1633}
}""",
    "salazar2020": """@inproceedings{salazar2020,
  title = {Masked Language Model Scoring},
  author = {Salazar, Julian and Liang, Davis and Nguyen, Toan Q. and Kirchhoff, Katrin},
  booktitle = {Proceedings of the 58th Annual Meeting of the Association for Computational Linguistics},
  publisher = {Association for Computational Linguistics},
  pages = {2699--2712},
  year = {2020},
  doi = {10.18653/v1/2020.acl-main.240}
}""",
    "hoogeboom2022": """@inproceedings{hoogeboom2022,
  title = {Autoregressive Diffusion Models},
  author = {Hoogeboom, Emiel and Gritsenko, Alexey A. and Bastings, Jasmijn and Poole, Ben and
            van den Berg, Rianne and Salimans, Tim},
  booktitle = {International Conference on Learning Representations},
  year = {2022},
  eprint = {2110.02037},
  archiveprefix = {arXiv}
}""",
    "kauf2023": """@inproceedings{kauf2023,
  title = {A Better Way to Do Masked Language Model Scoring},
  author = {Kauf, Carina and Ivanova, Anna},
  booktitle = {Proceedings of the 61st Annual Meeting of the Association for Computational Linguistics
               (Volume 2: Short Papers)},
  publisher = {Association for Computational Linguistics},
  pages = {925--935},
  year = {2023},
  doi = {10.18653/v1/2023.acl-short.80}
}""",
    "torroba2023": """@inproceedings{torroba2023,
  title = {Deriving Language Models from Masked Language Models},
  author = {Torroba Hennigen, Lucas and Kim, Yoon},
  booktitle = {Proceedings of the 61st Annual Meeting of the Association for Computational Linguistics
               (Volume 2: Short Papers)},
  publisher = {Association for Computational Linguistics},
  pages = {1149--1159},
  year = {2023},
  doi = {10.18653/v1/2023.acl-short.99}
}""",
    "li2024": """@inproceedings{li2024,
  title = {Promises and Pitfalls of Generative Masked Language Modeling: Theoretical Framework and Practical
           Guidelines},
  author = {Li, Yuchen and Kirchmeyer, Alexandre and Mehta, Aashay and Qin, Yilong and Dadachev, Boris and
            Papineni, Kishore and Kumar, Sanjiv and Risteski, Andrej},
  booktitle = {International Conference on Machine Learning},
  year = {2024},
  eprint = {2407.21046},
  archiveprefix = {arXiv}
}""",
    "sahoo2024": """@inproceedings{sahoo2024,
  title = {Simple and Effective Masked Diffusion Language Models},
  author = {Sahoo, Subham Sekhar and Arriola, Marianne and Schiff, Yair and Gokaslan, Aaron and Marroquin, Edgar and
            Chiu, Justin T. and Rush, Alexander and Kuleshov, Volodymyr},
  booktitle = {Advances in Neural Information Processing Systems},
  volume = {37},
  year = {2024},
  eprint = {2406.07524},
  archiveprefix = {arXiv}
}""",
    "nie2025": """@misc{nie2025,
  title = {Large Language Diffusion Models},
  author = {Nie, Shen and Zhu, Fengqi and You, Zebin and Zhang, Xiaolu and Ou, Jingyang and Hu, Jun and Zhou, Jun and
            Lin, Yankai and Wen, Ji-Rong and Li, Chongxuan},
  year = {2025},
  eprint = {2502.09992},
  archiveprefix = {arXiv}
}""",
}
