import{a as o,b as r}from"./chunk-2KGXO7E3.js";import"./chunk-G3MNZREZ.js";export{r as ColourCard,o as ColourChoice};
