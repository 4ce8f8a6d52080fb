import{a as o}from"./chunk-ZKTIOSDY.js";import"./chunk-3UXG4FD3.js";import"./chunk-G3MNZREZ.js";export{o as Privacy};
