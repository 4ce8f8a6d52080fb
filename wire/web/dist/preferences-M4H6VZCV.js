import{a as o}from"./chunk-CZT6HIYQ.js";import"./chunk-3UXG4FD3.js";import"./chunk-G3MNZREZ.js";export{o as Preferences};
