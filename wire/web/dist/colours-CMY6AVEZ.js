import{a as o,b as r}from"./chunk-GWIYWPPT.js";import"./chunk-YYCZNCAK.js";export{r as ColourCard,o as ColourChoice};
