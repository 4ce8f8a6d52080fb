import{a as o,b as r}from"./chunk-5ASAPQH3.js";import"./chunk-HIZALV3K.js";export{r as ColourCard,o as ColourChoice};
