import{a as o,b as r}from"./chunk-JTZODMJA.js";import"./chunk-RDKKZJ2P.js";export{r as ColourCard,o as ColourChoice};
